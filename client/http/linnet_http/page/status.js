// The status page: reads the metrics of linnet-server every few seconds and keeps 15 minutes of them.
const EVERY_SECONDS = 5;
const KEPT = (15 * 60) / EVERY_SECONDS;
const get = (id) => document.getElementById(id);
const samples = []; // {at, values: Map(name{labels} → number)}
let first = null;

// Prometheus' text format: the value of each "name{labels}".
export function parse(page) {
  const values = new Map();
  for (const line of page.split('\n')) {
    const found = /^([a-z_:][\w:]*(?:\{.*\})?) (\S+)$/i.exec(line);
    if (found) values.set(found[1], Number(found[2]));
  }
  return values;
}

const label = (key, name) => new RegExp(`[{,]${name}="([^"]*)"`).exec(key)?.[1] ?? '';

function sum(values, name) {
  let total = 0;
  for (const [key, value] of values) if (key === name || key.startsWith(`${name}{`)) total += value;
  return total;
}

// Counts of a histogram's buckets by their upper bound, of all labels together.
function buckets(values, name) {
  const found = new Map();
  for (const [key, value] of values) {
    if (!key.startsWith(`${name}_bucket{`)) continue;
    const bound = Number(label(key, 'le').replace('+Inf', 'Infinity'));
    found.set(bound, (found.get(bound) || 0) + value);
  }
  return [...found].sort((one, other) => one[0] - other[0]);
}

// The share of calls in each bucket, and the bounds within which half and 95 % of them are.
export function distribution(before, now) {
  const earlier = new Map(before);
  let below = 0;
  const counts = now.map(([bound, count]) => {
    const upTo = count - (earlier.get(bound) || 0);
    const inside = upTo - below;
    below = upTo;
    return [bound, inside];
  });
  const within = (share) => {
    let seen = 0;
    for (const [bound, count] of counts) {
      seen += count;
      if (below && seen >= share * below) return bound;
    }
    return null;
  };
  return { counts, total: below, half: within(0.5), most: within(0.95) };
}

const time = (seconds) => (seconds === null ? '–' : seconds === Infinity ? 'more' : seconds < 1 ? `${+(1000 * seconds).toPrecision(3)} ms` : `${+seconds.toPrecision(3)} s`);
const bytes = (count) => `${(count / 2 ** 20).toFixed(0)} MiB`;

function picture(kind, shapes) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 100 30');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('aria-hidden', 'true');
  for (const attributes of shapes) {
    const shape = document.createElementNS(svg.namespaceURI, kind);
    for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
    svg.append(shape);
  }
  return svg;
}

function line(numbers) {
  const most = Math.max(...numbers, 1e-9);
  const points = numbers.map((it, index) => `${(100 * index) / Math.max(numbers.length - 1, 1)},${29 - (28 * it) / most}`);
  return picture('path', points.length > 1 ? [{ d: `M${points.join('L')}` }] : []);
}

function bars(counts) {
  const most = Math.max(...counts.map(([, count]) => count), 1);
  const width = 100 / counts.length;
  return picture('rect', counts.map(([, count], index) => ({
    x: index * width, width: width * 0.8, y: 30 - (30 * count) / most, height: (30 * count) / most,
  })));
}

function element(name, text, ...children) {
  const made = document.createElement(name);
  made.append(text, ...children);
  return made;
}

// Each card: its name, its value in a sample (after the one before), and how it is written.
const rate = (name) => (now, before) => before && Math.max(0, sum(now.values, name) - sum(before.values, name)) / (now.at - before.at);
const CARDS = [
  ['Calls per second', rate('linnet_requests_total'), (it) => it.toFixed(1)],
  ['Tokens written per second', rate('linnet_target_tokens_total'), (it) => it.toFixed(0)],
  ['Calls in flight', (now) => sum(now.values, 'linnet_requests_in_flight'), String],
  ['Sequences waiting', (now) => [...now.values].filter(([key]) => key.startsWith('linnet_sequences{') && label(key, 'state') === 'waiting').reduce((total, it) => total + it[1], 0), String],
  ['Rows in a step (mean)', (now, before) => before && mean(now, before, 'linnet_step_rows'), (it) => it.toFixed(1)],
  ['Memory of the server', (now) => sum(now.values, 'process_resident_memory_bytes'), bytes],
  ['Calls refused per second', rate('linnet_rejected_total'), (it) => it.toFixed(1)],
];
const PHASES = [
  ['All', 'linnet_request_duration_seconds'], ['Tokenise', 'linnet_tokenize_duration_seconds'],
  ['Wait', 'linnet_queue_duration_seconds'], ['Encode', 'linnet_encode_duration_seconds'],
  ['Decode', 'linnet_decode_duration_seconds'], ['Detokenise', 'linnet_detokenize_duration_seconds'],
];

function mean(now, before, name) {
  const steps = sum(now.values, `${name}_count`) - sum(before.values, `${name}_count`);
  return steps ? (sum(now.values, `${name}_sum`) - sum(before.values, `${name}_sum`)) / steps : 0;
}

function show() {
  const cards = CARDS.map(([name, value, write]) => {
    const numbers = samples.map((it, index) => value(it, samples[index - 1])).filter((it) => it !== undefined);
    const card = element('section', element('h2', name));
    card.className = 'card';
    const said = element('div', numbers.length ? write(numbers.at(-1)) : '–');
    said.className = 'value';
    card.append(said, line(numbers));
    return card;
  });
  get('cards').replaceChildren(...cards);
  const now = samples.at(-1).values;
  get('phases').replaceChildren(...PHASES.map(([name, metric]) => {
    const { counts, total, half, most } = distribution(buckets(first, metric), buckets(now, metric));
    return element('tr', element('td', name), element('td', String(total)), element('td', time(half)), element('td', time(most)), element('td', counts.length ? bars(counts) : ''));
  }));
  get('models').replaceChildren(...[...now].filter(([key]) => key.startsWith('linnet_model_info{')).map(([key]) => {
    const name = label(key, 'model');
    const serving = [...now].some(([it, value]) => it.startsWith('linnet_model_serving{') && label(it, 'model') === name && value === 1);
    return element('tr', ...[name, label(key, 'version') || label(key, 'model_version'), label(key, 'device'), serving ? 'serving' : 'not serving'].map((it) => element('td', it)));
  }));
  get('when').textContent = `As of ${new Date().toLocaleTimeString()}; read again every ${EVERY_SECONDS} s. The lines show up to 15 minutes.`;
}

async function read() {
  try {
    const token = sessionStorage.getItem('token');
    const response = await fetch('server-metrics', { headers: token ? { Authorization: `Bearer ${token}` } : {} });
    if (!response.ok) throw new Error((await response.json()).error.message);
    samples.push({ at: Date.now() / 1000, values: parse(await response.text()) });
    first ||= samples[0].values;
    samples.splice(0, samples.length - KEPT);
    get('error').hidden = true;
    show();
  } catch (error) {
    get('error').hidden = false;
    get('error').textContent = `The server's metrics cannot be read: ${error.message}`;
  }
  setTimeout(read, EVERY_SECONDS * 1000);
}

read();
