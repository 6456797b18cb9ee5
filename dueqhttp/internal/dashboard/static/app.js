// What the dashboard does besides links and forms: it keeps an open page up to
// date, shows times in the reader's zone, and asks in dialogs.
(() => {
  'use strict';

  const pad = (n, width = 2) => String(n).padStart(width, '0');

  // local is a date as the reader's clock would show it.
  const local = (d, between = ' ') =>
    `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}${between}` +
    `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;

  // prepare makes HTML from the server ready to be shown.
  function prepare(root) {
    for (const time of root.querySelectorAll('time[datetime]')) {
      const date = new Date(time.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      if (time.classList.contains('rel')) {
        time.title = local(date);
      } else {
        time.title = time.textContent;
        time.textContent = local(date);
      }
    }
    for (const input of root.querySelectorAll('input[type="datetime-local"]')) {
      if (input.value) input.value = local(new Date(input.getAttribute('value') + 'Z'), 'T');
    }
    for (const zone of root.querySelectorAll('.zone')) zone.textContent = 'your time';
    for (const rows of root.querySelectorAll('thead, tbody, tr')) { // so that rows can be told apart by their keys
      for (const child of [...rows.childNodes]) {
        if (child.nodeType === Node.TEXT_NODE && !child.data.trim()) child.remove();
      }
    }
  }

  // Forms send times with their zone.
  document.addEventListener('formdata', (event) => {
    for (const input of event.target.querySelectorAll('input[type="datetime-local"]')) {
      if (input.value) event.formData.set(input.name, new Date(input.value).toISOString());
    }
  });

  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[data-dialog]');
    const dialog = link && document.getElementById(link.dataset.dialog);
    if (!dialog || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    dialog.showModal();
  });

  // waiting is set when a part of the page was left as it is, for it is in use.
  let waiting = false;

  // morph makes one node look like another and keeps what it can of it, so that
  // focus, input and scroll positions stay.
  function morph(from, to) {
    if (from.isEqualNode(to)) return;
    if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
      from.replaceWith(to);
      return;
    }
    if (from.nodeType !== Node.ELEMENT_NODE) {
      from.data = to.data;
      return;
    }
    if (inUse(from)) {
      waiting = true;
      return;
    }
    for (const { name, value } of to.attributes) {
      if (name !== 'open' && from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    for (const { name } of [...from.attributes]) {
      if (name !== 'open' && !to.hasAttribute(name)) from.removeAttribute(name);
    }
    morphChildren(from, to);
  }

  function morphChildren(from, to) {
    const keyed = new Map([...from.children].filter(key).map((child) => [key(child), child]));
    let at = from.firstChild;
    for (const want of [...to.childNodes]) {
      let have = key(want) ? keyed.get(key(want)) : at;
      if (!have || (!key(want) && key(have))) {
        from.insertBefore(want, at);
        continue;
      }
      if (have === at) at = at.nextSibling;
      else from.insertBefore(have, at);
      morph(have, want);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  const key = (node) => node.dataset?.key;

  // inUse tells whether somebody is about to click, or is reading out of, what
  // would move away under the pointer.
  function inUse(element) {
    if (!('hold' in element.dataset)) return false;
    const selection = document.getSelection();
    return element.matches(':hover') || element.contains(document.activeElement) ||
      (!selection.isCollapsed && element.contains(selection.anchorNode));
  }

  // keepLive has the server send the page's main part whenever it has changed.
  function keepLive() {
    const main = document.getElementById('main');
    const button = document.querySelector('button.live');
    const said = document.getElementById('said');
    let source, again, failures = 0, paused = false, state = '';

    function say(next, text) {
      button.querySelector('.text').textContent = text;
      button.title = paused ? 'Go on updating this page' : 'Stop updating this page';
      if (state && state !== next) said.textContent = text; // read out
      state = button.dataset.state = next;
    }

    function close() {
      clearTimeout(again);
      source?.close();
      source = undefined;
    }

    function open() {
      close();
      if (paused || document.hidden) return;
      source = new EventSource(location.pathname + location.search);
      source.addEventListener('page', (event) => {
        failures = 0;
        waiting = false;
        const fresh = document.createElement('template');
        fresh.innerHTML = event.data;
        prepare(fresh.content);
        morphChildren(main, fresh.content);
        say('live', waiting ? 'Live, but for what you point at' : 'Live');
      });
      source.addEventListener('trouble', (event) => say('trouble', 'Not updating: ' + event.data));
      source.addEventListener('error', () => {
        say('lost', 'Connection lost, trying again');
        if (source?.readyState === EventSource.CLOSED) { // refused: it does not try again by itself
          again = setTimeout(open, Math.min(30000, 1000 * 2 ** failures++));
        }
      });
    }

    button.hidden = false;
    button.addEventListener('click', () => {
      paused = !paused;
      if (paused) say('paused', 'Updates stopped');
      else say('live', 'Live');
      open();
    });
    document.addEventListener('visibilitychange', open);
    window.addEventListener('pagehide', close);
    window.addEventListener('pageshow', (event) => { if (event.persisted) open(); });
    say('live', 'Live');
    open();
  }

  prepare(document);
  // Last, for a link to a part of the page takes the focus away.
  window.addEventListener('load', () => setTimeout(() => document.querySelector('.notice')?.focus({ preventScroll: true })));
  if ('live' in document.body.dataset) keepLive();
})();
