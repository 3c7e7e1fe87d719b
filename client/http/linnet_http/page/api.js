// Calls of the JSON API (docs/HTTP.md).

// An answer with an error: what happened, and what the server says of the wait before a retry.
export class ApiError extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function send(path, body, token, signal) {
  const isForm = body instanceof FormData;
  const headers = isForm ? {} : { 'Content-Type': 'application/json' };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, {
      method: body ? 'POST' : 'GET', headers, signal,
      body: isForm ? body : body ? JSON.stringify(body) : undefined,
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The page cannot reach its server. Is it still running?', null);
  }
  if (response.ok) return response;
  let message = `The server answered with status ${response.status}.`;
  try {
    const said = await response.json();
    message = said.message || said.error.message;
  } catch { /* a proxy answered, not Linnet */ }
  throw new ApiError(response.status, message, response.headers.get('Retry-After'));
}

export async function call(path, body, token, signal) {
  return (await send(path, body, token, signal)).json();
}

// The bytes of an answer.
export async function download(path, body, token) {
  return (await send(path, body, token)).blob();
}

// Yields {event, data} of a stream of server-sent events. Throws ApiError for the event "error", and
// for a stream that ends without its last event.
export async function* stream(path, body, token, signal) {
  const response = await send(path, body, token, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ApiError(0, 'The answer was cut off. Try again.', null);
    waiting += value;
    const events = waiting.split('\n\n');
    waiting = events.pop();
    for (const text of events) {
      const found = /^event: (\w+)\ndata: (.*)$/s.exec(text);
      if (!found) continue; // a comment
      const data = JSON.parse(found[2]);
      if (found[1] === 'error') throw new ApiError(data.code, data.message, null);
      yield { event: found[1], data };
      if (found[1] === 'response') return;
    }
  }
}
