'use strict';
document.documentElement.classList.add('js');
// The dial: the line follows at once, the table as soon as the server has answered.
(() => {
  const dial = document.getElementById('dial');
  if (!dial) return;
  const line = document.getElementById('dial-line');
  const output = document.getElementById('dial-value');
  let timer = 0, asked = 0;
  const fetchBoard = async () => {
    const mine = ++asked;
    const query = new URLSearchParams(new FormData(dial.form));
    const reply = await fetch('/?' + query);
    if (!reply.ok || mine !== asked) return;
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    for (const id of ['board-shares', 'board-table', 'board-presets']) {
      const fresh = page.getElementById(id), old = document.getElementById(id);
      if (fresh && old) old.replaceWith(document.adoptNode(fresh));
    }
    history.replaceState(null, '', '/?' + query);
  };
  dial.addEventListener('input', () => {
    output.textContent = Number(dial.value).toFixed(2) + '×';
    if (line) {
      const along = (dial.value - dial.min) / (dial.max - dial.min);
      const from = Number(line.dataset.from), to = Number(line.dataset.to);
      line.setAttribute('transform', `translate(${from + along * (to - from)} 0)`);
    }
    clearTimeout(timer);
    timer = setTimeout(() => fetchBoard().catch(() => {}), 120);
  });
})();
// Choices that take effect by themselves; without scripts their form has a button.
for (const form of document.querySelectorAll('form[data-at-once]')) {
  form.addEventListener('change', (event) => event.target.id !== 'dial' && form.requestSubmit());
}
// Sizes of the chosen problem alone; those that fit no runner are grey.
(() => {
  const problem = document.getElementById('problem'), size = document.getElementById('size');
  if (!problem || !size) return;
  const show = () => {
    const option = problem.selectedOptions[0];
    const sizes = option && option.dataset.sizes ? option.dataset.sizes.split(' ') : null;
    const tooLarge = option && option.dataset.tooLarge ? option.dataset.tooLarge.split(' ') : [];
    for (const each of size.options) {
      each.hidden = !!sizes && each.value !== '' && !sizes.includes(each.value);
      const fits = !tooLarge.includes(each.value);
      each.disabled = each.hidden || !fits;
      if (each.value !== '') each.text = each.value + (fits ? '' : ' (fits no runner)');
      if (each.disabled && each.selected) size.value = '';
    }
  };
  problem.addEventListener('change', show);
  show();
})();
// A file that was chosen, in the editor.
(() => {
  const file = document.getElementById('file'), source = document.getElementById('source');
  if (!file || !source) return;
  file.addEventListener('change', async () => {
    if (!file.files.length || file.files[0].size > 1 << 20) return;
    source.value = await file.files[0].text();
    const name = document.getElementById('name');
    if (name) name.value = file.files[0].name;
    file.value = '';
  });
})();
// Events of a job or a run as they come.
(() => {
  const list = document.querySelector('[data-events]');
  if (!list || !window.EventSource) return;
  const source = new EventSource(list.dataset.events);
  const bar = document.getElementById('progress');
  const add = (message) => {
    let entry;
    try { entry = JSON.parse(message.data); } catch { return; }
    const event = entry.event && typeof entry.event === 'object' ? entry.event : entry;
    if (event.event === 'ended' || event.event === 'verdict') {
      source.close();
      location.reload();
      return;
    }
    if (bar && typeof event.fraction === 'number') bar.value = event.fraction;
    const item = document.createElement('li');
    const cells = [String(entry.time || '').slice(11, 19), event.stage || event.event || '',
      event.text || event.message || ''];
    for (const text of cells) {
      const cell = document.createElement('span');
      cell.textContent = text;
      item.append(cell);
    }
    list.prepend(item);
    while (list.children.length > 200) list.lastElementChild.remove();
  };
  source.onmessage = add;
  for (const name of ['progress', 'verdict', 'ended', 'error-event', 'result'])
    source.addEventListener(name, add);
})();
// A part that changes while it is shown. What the reader has open or selected stays.
(() => {
  const seconds = Number(document.querySelector('[data-refresh]')?.dataset.refresh);
  if (!seconds) return;
  const timer = setInterval(async () => {
    const old = document.getElementById('live');
    const at_work = old.contains(document.activeElement) || old.querySelector('details[open]') ||
      !getSelection().isCollapsed;
    if (document.hidden || at_work) return;
    const reply = await fetch(location.href).catch(() => null);
    if (!reply || !reply.ok) return;
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    const fresh = page.getElementById('live');
    if (fresh) old.replaceWith(document.adoptNode(fresh));
    else {
      clearInterval(timer);
      location.reload();
    }
  }, 1000 * seconds);
})();
// Commands to copy.
for (const command of document.querySelectorAll('.command')) {
  if (!navigator.clipboard) break;
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(command.querySelector('pre').textContent);
    button.textContent = 'Copied';
  });
  command.append(button);
}
