// The page: settings, the text, its answer while it arrives, word alignments, other translations.
import { ApiError, call, stream } from './api.js';
import { showAnswer } from './answer.js';
import { translateFile } from './file.js';

const get = (id) => document.getElementById(id);
const text = get('text');
const answer = get('answer');
const TYPING_MS = 500; // of silence before a text is sent
let running = null; // AbortController of the call in flight
let timer = 0;
let pairs = {}; // target codes by source code
let names = {};
let summarizers = []; // models
let targetIsChosen = false; // by a person or a link

const task = () => document.querySelector('input[name=task]:checked').value;
const token = () => get('token').value.trim();

function option(select, value, label) {
  select.add(new Option(label, value));
}

function fill(select, codes, first) {
  const kept = select.value;
  select.replaceChildren();
  if (first) option(select, '', first);
  for (const code of codes) option(select, code, names[code] || code);
  if ([...select.options].some((it) => it.value === kept)) select.value = kept;
}

function showError(error) {
  const box = get('error');
  box.hidden = !error;
  if (!error) return;
  box.textContent = error.message;
  if (error.status === 401) {
    box.textContent = 'The server needs a token, or does not know this one. Enter a token under "HTML, glossary, token and link".';
    document.querySelector('details').open = true;
  }
  if (error.retryAfter) box.textContent += ` Try again in ${error.retryAfter} s.`;
}

async function loadLanguages() {
  const { models } = await call('v1/models', null, token());
  pairs = {};
  summarizers = models.filter((it) => it.task === 'TASK_SUMMARIZE');
  for (const model of models.filter((it) => it.task === 'TASK_TRANSLATE')) {
    for (const pair of model.language_pairs) {
      (pairs[pair.source_language_code] ||= new Set()).add(pair.target_language_code);
    }
  }
  const spoken = new Intl.DisplayNames(['en'], { type: 'language' });
  const codes = new Set(Object.entries(pairs).flatMap(([source, targets]) => [source, ...targets]));
  for (const model of summarizers) codes.add(model.source_language_code);
  names = Object.fromEntries([...codes].map((code) => [code, spoken.of(code)]));
  const byName = (one, other) => names[one].localeCompare(names[other]);
  fill(get('source'), Object.keys(pairs).sort(byName), 'Detect');
  fill(get('language'), [...new Set(summarizers.map((it) => it.source_language_code))].sort(byName));
  showTargets();
  showStyles();
  for (const input of document.querySelectorAll('input[name=task]')) {
    input.disabled = input.value === 'summarize' ? !summarizers.length : !Object.keys(pairs).length;
  }
}

function showTargets() {
  const source = get('source').value;
  const direct = source ? [...pairs[source]] : [];
  const through = direct.flatMap((middle) => [...(pairs[middle] || [])]);
  const all = Object.values(pairs).flatMap((targets) => [...targets]);
  const codes = [...new Set(source ? [...direct, ...through] : all)].filter((it) => it !== source);
  fill(get('target'), codes.sort((one, other) => names[one].localeCompare(names[other])));
}

function showStyles() {
  const model = summarizers.find((it) => it.source_language_code === get('language').value);
  const select = get('style');
  select.replaceChildren();
  for (const style of model?.summary_styles || []) {
    const name = style.replace('SUMMARY_STYLE_', '').toLowerCase();
    option(select, style, name[0].toUpperCase() + name.slice(1));
  }
  select.closest('label').hidden = !select.options.length;
}

function glossary() {
  const entries = get('glossary').value.split('\n').filter((line) => line.trim()).map((line) => {
    const at = line.indexOf('=');
    const source = (at < 0 ? line : line.slice(0, at)).trim();
    return { source_text: source, target_text: at < 0 ? '' : line.slice(at + 1).trim() };
  });
  return entries.length ? { entries } : undefined;
}

function request(contents) {
  if (task() === 'summarize') {
    const words = Number(get('words').value);
    return {
      contents, language_code: get('language').value, long_input: 'LONG_INPUT_CHUNK',
      style: get('style').value || undefined, length: words ? { words } : undefined,
      priority: 'PRIORITY_INTERACTIVE',
    };
  }
  return {
    contents, source_language_code: get('source').value, target_language_code: get('target').value,
    glossary: glossary(), mime_type: get('html').checked ? 'text/html' : undefined, priority: 'PRIORITY_INTERACTIVE',
  };
}

async function update() {
  running?.abort();
  running = null;
  const source = text.value;
  showError(null);
  get('warnings').hidden = true;
  get('marks').textContent = '';
  get('copy').disabled = true;
  get('about').textContent = '';
  if (!source.trim()) {
    answer.textContent = '';
    answer.setAttribute('aria-busy', 'false');
    return;
  }
  const mine = (running = new AbortController());
  const body = request([source]);
  if (task() === 'translate' && !body.glossary) body.alignments = true;
  answer.setAttribute('aria-busy', 'true');
  let said = '';
  try {
    for await (const { event, data } of stream(`v1/${task()}/stream`, body, token(), mine.signal)) {
      if (event === 'part') answer.textContent = said += data.text;
      else show(source, data);
    }
  } catch (error) {
    if (error.name !== 'AbortError') {
      answer.textContent = '';
      showError(error);
      if (!(error instanceof ApiError)) throw error;
    }
  } finally {
    if (running === mine) answer.setAttribute('aria-busy', 'false');
  }
}

// A text that is already in a target that nobody has chosen is translated into another language.
function switchTarget(one) {
  const known = one.warnings.some((it) => it.reason === 'ALREADY_IN_TARGET_LANGUAGE');
  if (!known || targetIsChosen) return false;
  const other = [...(pairs[one.detected_language.language_code] || [])][0];
  if (!other) return false;
  targetIsChosen = true;
  get('target').value = other;
  update();
  return true;
}

function show(source, response) {
  const one = (response.translations || response.summaries)[0];
  if (switchTarget(one)) return;
  showAnswer(answer, get('marks'), source, one, task() === 'translate' ? offerAlternatives : null);
  get('copy').disabled = false;
  const from = one.detected_language ? `, from ${names[one.detected_language.language_code] || one.detected_language.language_code}` : '';
  const model = response.model || one.model;
  const through = response.pivot ? ` through ${response.pivot.language_code}` : '';
  const time = response.timings ? `, ${Number.parseFloat(response.timings.total).toFixed(2)} s` : '';
  get('about').textContent = model ? `${model} ${response.model_version || one.model_version}${through}${from}${time}` : '';
  const warnings = get('warnings');
  warnings.hidden = !one.warnings.length;
  warnings.replaceChildren(...one.warnings.map((it) => Object.assign(document.createElement('li'), { textContent: it.message })));
}

// Shows other translations of the source bytes [begin, end), and puts the chosen one in the element.
async function offerAlternatives(element, source) {
  const list = get('choices');
  list.replaceChildren();
  try {
    const body = request([source]);
    const beam = 6;
    body.options = { n_best: beam, beam_size: beam };
    delete body.glossary;
    const { translations } = await call('v1/translate', body, token());
    for (const hypothesis of translations[0].segments[0].hypotheses) {
      const button = Object.assign(document.createElement('button'), { type: 'button', textContent: hypothesis.text });
      button.addEventListener('click', () => {
        element.textContent = hypothesis.text;
        get('alternatives').close();
        element.focus();
      });
      const item = document.createElement('li');
      item.append(button);
      list.append(item);
    }
    get('alternatives').showModal();
  } catch (error) {
    showError(error);
  }
}

function later() {
  const length = [...text.value].length;
  get('count').textContent = `${length} character${length === 1 ? '' : 's'}`;
  clearTimeout(timer);
  timer = setTimeout(update, TYPING_MS);
}

// The link holds the settings after the "#", which no server sees.
function saveSettings() {
  const settings = new URLSearchParams({ task: task() });
  for (const id of ['source', 'target', 'language', 'style', 'words']) {
    if (get(id).value) settings.set(id, get(id).value);
  }
  if (get('html').checked) settings.set('html', 'true');
  return settings.toString();
}

function loadSettings() {
  const settings = new URLSearchParams(location.hash.slice(1));
  for (const input of document.querySelectorAll('input[name=task]')) {
    if (input.value === settings.get('task') && !input.disabled) input.checked = true;
  }
  for (const id of ['source', 'target', 'language', 'style', 'words']) {
    const value = settings.get(id);
    if (value === null) continue;
    if (id === 'target') targetIsChosen = true;
    if (id === 'words' || [...get(id).options].some((it) => it.value === value)) get(id).value = value;
    if (id === 'source') showTargets();
    if (id === 'language') showStyles();
  }
  get('html').checked = settings.get('html') === 'true';
  showTask();
}

function showTask() {
  for (const part of document.querySelectorAll('[data-task]')) part.hidden = part.dataset.task !== task();
  get('answer-title').textContent = task() === 'translate' ? 'Translation' : 'Summary';
}

async function start() {
  get('token').value = sessionStorage.getItem('token') || '';
  try {
    await loadLanguages();
    loadSettings();
    showError(null);
  } catch (error) {
    showError(error);
  }
}

text.addEventListener('input', later);
text.addEventListener('scroll', () => { get('marks').scrollTop = text.scrollTop; });
get('glossary').addEventListener('input', later);
get('html').addEventListener('change', update);
get('settings').addEventListener('submit', (event) => event.preventDefault());
get('settings').addEventListener('change', (event) => {
  if (event.target.id === 'source') showTargets();
  if (event.target.id === 'target') targetIsChosen = true;
  if (event.target.id === 'language') showStyles();
  if (event.target.name === 'task') showTask();
  history.replaceState(null, '', `#${saveSettings()}`);
  update();
});
get('swap').addEventListener('click', () => {
  const [source, target] = [get('source').value, get('target').value];
  if (!source || !pairs[target]) return;
  get('source').value = target;
  showTargets();
  get('target').value = source;
  if (answer.textContent) text.value = answer.textContent;
  later();
});
get('token').addEventListener('change', () => {
  sessionStorage.setItem('token', token());
  start().then(update);
});
get('file').addEventListener('change', async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  showError(null);
  try {
    await translateFile(file, get('source').value, get('target').value, token(), get('progress'), get('result'));
  } catch (error) {
    showError(error);
    if (!(error instanceof ApiError)) throw error;
  } finally {
    event.target.value = ''; // the same file can be chosen again
  }
});
get('copy').addEventListener('click', () => navigator.clipboard.writeText(answer.textContent));
get('share').addEventListener('click', () => {
  navigator.clipboard.writeText(`${location.href.split('#')[0]}#${saveSettings()}`);
});
start();
