(() => {
  const list = document.querySelector('.stream');
  const boxes = [...list.querySelectorAll('.t')];
  const cards = [...document.querySelectorAll('.card')];
  let at = 0, row = -1, shown = -1;
  const show = (index) => {
    if (index === shown || !cards[index]) return;
    cards.forEach((card, other) => card.classList.toggle('on', other === index));
    shown = index;
    choose(-1);
  };
  const choose = (to) => {
    const rows = [...cards[shown].querySelectorAll('tbody tr')];
    row = Math.max(-1, Math.min(to, rows.length - 1));
    rows.forEach((one, index) => one.classList.toggle('at', index === row));
    if (row >= 0) rows[row].scrollIntoView({ block: 'nearest' });
  };
  const go = (to) => {
    if (!boxes.length) return;
    boxes[at].classList.remove('at');
    boxes[at].removeAttribute('aria-selected');
    at = Math.max(0, Math.min(to, boxes.length - 1));
    boxes[at].classList.add('at');
    boxes[at].setAttribute('aria-selected', 'true');
    list.setAttribute('aria-activedescendant', boxes[at].id);
    boxes[at].scrollIntoView({ block: 'nearest' });
    show(at);
  };
  const intervention = (step) => {
    for (let to = at + step; boxes[to]; to += step) if (boxes[to].classList.contains('not')) return to;
    return at;
  };
  boxes.forEach((box, index) => {
    box.addEventListener('mouseenter', () => show(index));
    box.addEventListener('click', () => { go(index); list.focus({ preventScroll: true }); });
  });
  list.addEventListener('mouseleave', () => show(at));
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {
      ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1),
      Home: () => go(0), End: () => go(boxes.length - 1),
      ArrowUp: () => choose(row - 1), ArrowDown: () => choose(row + 1),
      n: () => go(intervention(1)), p: () => go(intervention(-1)),
    };
    if (!Object.hasOwn(moves, event.key)) return;
    event.preventDefault();
    moves[event.key]();
  });
  go(0);
})();
