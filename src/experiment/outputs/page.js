(() => {
  const sections = [...document.querySelectorAll('section')];
  const value = (cell) => cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent.trim();
  const compare = (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === '' || b === '') return (a === '') - (b === '');
    const numbers = typeof a === 'number' && typeof b === 'number';
    return numbers ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true });
  };
  for (const table of document.querySelectorAll('table')) {
    const heads = [...table.querySelectorAll('th')];
    heads.forEach((head, column) => head.firstElementChild.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      heads.forEach((other) => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => (down ? -1 : 1) * compare(a.cells[column], b.cells[column]));
      table.tBodies[0].append(...rows);
    }));
  }
  let at = -1;
  document.addEventListener('keydown', (event) => {
    const step = { j: 1, k: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    at = Math.max(0, Math.min(at + step, sections.length - 1));
    sections[at].focus();
    sections[at].scrollIntoView({ block: 'start' });
  });
})();
