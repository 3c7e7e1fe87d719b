// A file: upload, progress, and a link to the result (docs/FILES.md).
import { ApiError, call, download } from './api.js';

const POLL_MS = 500;

export async function translateFile(file, source, target, token, bar, link) {
  link.hidden = true;
  bar.hidden = false;
  bar.removeAttribute('value');
  try {
    const form = new FormData();
    if (source) form.set('source_lang', source);
    form.set('target_lang', target);
    form.set('file', file, file.name);
    const { document_id: id, document_key } = await call('v2/document', form, token);
    for (;;) {
      const state = await call(`v2/document/${id}`, { document_key }, token);
      if (state.status === 'error') throw new ApiError(0, state.error_message, null);
      if (state.status === 'done') break;
      bar.value = state.progress;
      await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
    }
    const blob = await download(`v2/document/${id}/result`, { document_key }, token);
    if (link.href) URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(blob);
    link.download = file.name.replace(/(\.\w+)?$/, `_${target}$1`);
    link.textContent = `Download ${link.download}`;
    link.hidden = false;
  } finally {
    bar.hidden = true;
  }
}
