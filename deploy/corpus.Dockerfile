# linnet-corpus with Ray or Spark, on the image of linnet-server, whose linnet-decode and models it uses:
#
#   docker build -f deploy/corpus.Dockerfile --build-arg ENGINE=ray -t linnet-ray .
#   docker build -f deploy/corpus.Dockerfile --build-arg ENGINE=spark -t linnet-spark .
#
# docker-compose.ray.yml and docker-compose.spark.yml make clusters of them.
ARG LINNET_IMAGE=linnet-server
FROM ${LINNET_IMAGE}
ARG ENGINE=ray
USER root
# client/corpus/engines.txt pins the engines. Spark is written for the JVM.
RUN --mount=type=bind,target=/src \
    java=$(test "$ENGINE" = ray || echo openjdk-17-jre-headless) \
 && apt-get update && apt-get install -y --no-install-recommends python3-venv $java \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* \
 && cp -r /src/client /src/proto /tmp \
 && sed 's/\[.*\]//' /src/client/corpus/engines.txt >/tmp/constraints \
 && python3 -m venv /opt/corpus \
 && /opt/corpus/bin/pip install --no-cache-dir --disable-pip-version-check -c /tmp/constraints \
      /tmp/client/python "/tmp/client/corpus[$ENGINE]" \
 && rm -r /tmp/client /tmp/proto /tmp/constraints
ENV PATH=/opt/corpus/bin:$PATH PYSPARK_PYTHON=/opt/corpus/bin/python
USER 10001:10001
# The folder of the data, which all nodes of a cluster mount.
WORKDIR /corpus
HEALTHCHECK NONE
ENTRYPOINT []
LABEL org.opencontainers.image.title="linnet-$ENGINE" \
      org.opencontainers.image.description="Translates corpora on clusters of Ray or Spark"
