// Shows an answer as sentences and words, and marks the source words of the word under the pointer.

// The index in `text` (UTF-16) of each byte of its UTF-8.
export function byteOffsets(text) {
  const offsets = [];
  let at = 0;
  for (const character of text) {
    const bytes = character.codePointAt(0) < 0x80 ? 1 : character.codePointAt(0) < 0x800 ? 2 : character.length === 1 ? 3 : 4;
    for (let byte = 0; byte < bytes; byte += 1) offsets.push(at);
    at += character.length;
  }
  offsets.push(at);
  return offsets;
}

function mark(marks, source, ranges) {
  marks.replaceChildren();
  let end = 0;
  for (const [from, to] of ranges.sort((one, other) => one[0] - other[0])) {
    if (from < end) continue;
    marks.append(source.slice(end, from));
    marks.append(Object.assign(document.createElement('mark'), { textContent: source.slice(from, to) }));
    end = to;
  }
  marks.append(source.slice(end));
}

// The words of a segment: [begin, end, source ranges] with indices in the target text.
function words(segment, sourceAt, targetAt) {
  const found = new Map();
  for (const it of segment.word_alignments || []) {
    const key = it.target_begin;
    const entry = found.get(key) || [targetAt[it.target_begin], targetAt[it.target_end], []];
    entry[2].push([sourceAt[it.source_begin], sourceAt[it.source_end]]);
    found.set(key, entry);
  }
  return [...found.values()].sort((one, other) => one[0] - other[0]);
}

// Fills `answer` with the text of `one`. A click on a sentence, or Enter, calls `choose(element,
// source text of the sentence)` if it is given.
export function showAnswer(answer, marks, source, one, choose) {
  const sourceAt = byteOffsets(source);
  const targetAt = byteOffsets(one.text);
  answer.replaceChildren();
  let end = 0;
  for (const segment of one.segments) {
    const [begin, stop] = [targetAt[segment.target_begin], targetAt[segment.target_end]];
    answer.append(one.text.slice(end, begin));
    const sentence = document.createElement('span');
    sentence.className = 'sentence';
    if (choose) {
      const said = source.slice(sourceAt[segment.source_begin], sourceAt[segment.source_end]);
      sentence.tabIndex = 0;
      sentence.setAttribute('role', 'button');
      sentence.title = 'Show other translations';
      sentence.addEventListener('click', () => choose(sentence, said));
      sentence.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          choose(sentence, said);
        }
      });
    }
    let at = begin;
    for (const [from, to, ranges] of words(segment, sourceAt, targetAt)) {
      sentence.append(one.text.slice(at, from));
      const word = Object.assign(document.createElement('span'), { textContent: one.text.slice(from, to), className: 'word' });
      word.addEventListener('pointerenter', () => mark(marks, source, ranges));
      word.addEventListener('pointerleave', () => { marks.textContent = ''; });
      sentence.append(word);
      at = to;
    }
    sentence.append(one.text.slice(at, stop));
    answer.append(sentence);
    end = stop;
  }
  answer.append(one.text.slice(end));
}
