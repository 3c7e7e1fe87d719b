#!/usr/bin/env bash
#SBATCH --job-name=linnet-corpus
#SBATCH --array=0-99
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
# Translates a shard of a corpus in each task of a Slurm array (docs/CORPUS.md):
#
#     sbatch deploy/slurm/corpus.sh 'corpus/*.jsonl.zst' -o out --bundle model/bundles/en-de
#
# All tasks must see the inputs and the output. A task that is ended or requeued goes on from its last
# chunk, and the array may be submitted again with another size: what is done stays done.
set -euo pipefail

exec linnet-corpus run "$@" \
  --shard "$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN))/$SLURM_ARRAY_TASK_COUNT" \
  --children "${SLURM_CPUS_PER_TASK:-1}" --threads 1
