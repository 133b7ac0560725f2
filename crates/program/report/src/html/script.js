(function () {
  'use strict';
  var root = document.documentElement;
  var button = document.getElementById('theme');
  var names = { auto: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };
  function theme(name) {
    if (name === 'auto') root.removeAttribute('data-theme');
    else root.setAttribute('data-theme', name);
    button.textContent = names[name];
    button.dataset.now = name;
  }
  button.hidden = false;
  button.addEventListener('click', function () {
    var next = { auto: 'light', light: 'dark', dark: 'auto' }[button.dataset.now || 'auto'];
    theme(next);
    try { localStorage.setItem('sweetspot-theme', next); } catch (e) { /* a file may have no storage */ }
  });
  try {
    var kept = localStorage.getItem('sweetspot-theme');
    if (names[kept]) theme(kept);
  } catch (e) { /* a file may have no storage */ }

  // The nearest value of a chart is shown beside the pointer.
  var tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.appendChild(tip);
  var lit = null;
  function clear() {
    tip.hidden = true;
    if (lit) lit.classList.remove('on');
    lit = null;
  }
  function text(mark) {
    var title = mark.querySelector('title');
    if (title) {
      mark.dataset.text = title.textContent;
      title.remove();
    }
    return mark.dataset.text;
  }
  function show(mark, x, y) {
    if (lit !== mark) {
      clear();
      lit = mark;
      mark.classList.add('on');
    }
    tip.textContent = text(mark);
    tip.hidden = false;
    var box = tip.getBoundingClientRect();
    var left = Math.min(x + 14, innerWidth - box.width - 8);
    var top = y - box.height - 12 < 4 ? y + 18 : y - box.height - 12;
    tip.style.left = Math.max(8, left) + 'px';
    tip.style.top = top + 'px';
  }
  document.querySelectorAll('svg.chart').forEach(function (svg) {
    function near(event) {
      var best = null, least = 900;
      svg.querySelectorAll('.p').forEach(function (mark) {
        var box = mark.getBoundingClientRect();
        var dx = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
        var dy = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
        var far = dx * dx + dy * dy;
        if (far <= least) { least = far; best = mark; }
      });
      if (best) show(best, event.clientX, event.clientY); else clear();
    }
    svg.addEventListener('pointermove', near);
    svg.addEventListener('pointerdown', near);
    svg.addEventListener('pointerleave', clear);
  });
  addEventListener('scroll', clear, { passive: true });

  // Tables that can be sorted and searched.
  function value(row, column) {
    var plain = row.cells[column].textContent.replace(/\u202f/g, '').replace('\u2212', '-');
    var number = parseFloat(plain);
    return isNaN(number) ? plain : number;
  }
  document.querySelectorAll('.all').forEach(function (part) {
    var body = part.querySelector('tbody');
    part.querySelectorAll('th').forEach(function (head, column) {
      head.tabIndex = 0;
      function sort() {
        var down = head.getAttribute('aria-sort') === 'ascending';
        part.querySelectorAll('th').forEach(function (other) { other.removeAttribute('aria-sort'); });
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        var rows = Array.from(body.rows).map(function (row) { return [value(row, column), row]; });
        rows.sort(function (a, b) {
          var x = a[0], y = b[0];
          if (typeof x !== typeof y) return typeof x === 'number' ? -1 : 1;
          var order = x < y ? -1 : x > y ? 1 : 0;
          return down ? -order : order;
        });
        rows.forEach(function (pair) { body.appendChild(pair[1]); });
      }
      head.addEventListener('click', sort);
      head.addEventListener('keydown', function (event) {
        if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); sort(); }
      });
    });
    var box = part.querySelector('input');
    if (box) box.addEventListener('input', function () {
      var wanted = box.value.toLowerCase().split(/\s+/);
      Array.from(body.rows).forEach(function (row) {
        var text = row.textContent.toLowerCase();
        row.hidden = !wanted.every(function (word) { return text.includes(word); });
      });
    });
  });
})();
