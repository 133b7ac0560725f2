"use strict";
// Everything is built from text nodes: names of GPUs and users come from elsewhere.
const SVG = "http://www.w3.org/2000/svg";
const element = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};
const drawn = (name, attributes, text) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};
const known = (value) => typeof value === "number" && Number.isFinite(value);
const show = (value, unit, digits = 0) => (known(value) ? value.toFixed(digits) + " " + unit : "unknown");
const energy = (joules) => {
  if (!known(joules)) return "unknown";
  const size = Math.abs(joules);
  if (size >= 3.6e6) return (joules / 3.6e6).toFixed(2) + " kWh";
  if (size >= 1e4) return (joules / 1e3).toFixed(1) + " kJ";
  return joules.toFixed(size < 10 ? 2 : 0) + " J";
};
const duration = (seconds) => {
  if (!known(seconds)) return "unknown";
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  if (hours > 0) return hours + " h " + minutes + " min";
  return minutes > 0 ? minutes + " min " + (whole % 60) + " s" : whole + " s";
};
const rows = (pairs) => {
  const list = element("dl");
  for (const [name, value] of pairs) if (value !== null) list.append(element("dt", {}, name), element("dd", {}, value));
  return list;
};

// A line over even steps, with a limit as a dashed line.
const powerFigure = (gpu) => {
  const width = 300, height = 90, left = 42, bottom = 16;
  const values = gpu.recent_power_w || [];
  const top = Math.max(gpu.cap_w || 0, gpu.default_cap_w || 0, ...values, 1) * 1.05;
  const x = (place) => left + ((width - left) * (place + 120 - values.length)) / 119;
  const y = (value) => (height - bottom) * (1 - value / top);
  const label = "Power of GPU " + gpu.index + " in the last two minutes, now " + show(gpu.power_w, "W") + ", cap " + show(gpu.cap_w, "W") + ", core clock " + show(gpu.core_clock_mhz, "MHz");
  const figure = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  figure.append(drawn("path", { class: "axis", d: `M${left} 0V${height - bottom}H${width}` }));
  figure.append(drawn("text", { x: 0, y: 10 }, top.toFixed(0) + " W"), drawn("text", { x: 0, y: height - bottom }, "0 W"));
  figure.append(drawn("text", { x: left, y: height - 3 }, "-2 min"), drawn("text", { x: width - 24, y: height - 3 }, "now"));
  if (values.length > 1) {
    const line = values.map((value, place) => `${place ? "L" : "M"}${x(place).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const floor = height - bottom;
    figure.append(drawn("path", { class: "area", d: `${line}L${x(values.length - 1)} ${floor}L${x(0)} ${floor}Z` }));
    figure.append(drawn("path", { class: "power", d: line }));
  }
  // The clock has a scale of its own. It is read only while somebody looks, so its line has breaks.
  const clocks = gpu.recent_core_clock_mhz || [];
  if (clocks.length > 1) {
    const most = Math.max(...clocks.map((clock) => clock[1]), 1) * 1.05;
    const at = (age) => left + ((width - left) * (119 - Math.min(age, 119))) / 119;
    const step = (clock, place) => (place && clocks[place - 1][0] - clock[0] < 6 ? "L" : "M");
    const line = clocks.map((clock, place) => `${step(clock, place)}${at(clock[0]).toFixed(1)} ${((height - bottom) * (1 - clock[1] / most)).toFixed(1)}`);
    figure.append(drawn("path", { class: "clock", d: line.join("") }));
    const middle = (left + width) / 2;
    figure.append(drawn("text", { class: "clocks", x: middle, y: height - 3, "text-anchor": "middle" }, "clock, top: " + most.toFixed(0) + " MHz"));
  }
  if (known(gpu.cap_w)) figure.append(drawn("path", { class: "limit", d: `M${left} ${y(gpu.cap_w)}H${width}` }));
  return figure;
};

const gpuCard = (gpu) => {
  const title = element("h3", {}, `GPU ${gpu.index}: ${gpu.name}`);
  if (gpu.lost) return element("article", { class: "card" }, title, element("p", { class: "cap" }, "This GPU no longer answers."));
  const big = element("div", {}, element("span", { class: "big" }, show(gpu.power_w, "W")), " ", element("span", { class: "cap" }, "of " + show(gpu.cap_w, "W")));
  const lowered = known(gpu.cap_w) && known(gpu.default_cap_w) && gpu.cap_w < gpu.default_cap_w - 0.5;
  const hasFigure = known(gpu.cap_w) || (gpu.recent_power_w || []).length > 1;
  return element("article", { class: "card" }, title, big, hasFigure ? powerFigure(gpu) : null, rows([
    ["Core clock", show(gpu.core_clock_mhz, "MHz")],
    ["Limited by", gpu.limited_by || "unknown"],
    ["Default cap", lowered ? show(gpu.default_cap_w, "W") : null],
    ["Use", known(gpu.utilisation) ? show(gpu.utilisation * 100, "%") : null],
    ["Temperature", known(gpu.temperature_c) ? show(gpu.temperature_c, "°C") : null],
    ["Slowed by the cap", known(gpu.throttled_by_power_s) ? duration(gpu.throttled_by_power_s) : null],
    ["Energy so far", energy(gpu.energy_j)],
  ]));
};

const pointFigure = (figure) => {
  const width = 300, height = 130, left = 44, bottom = 30;
  const points = [...figure.points].sort((one, other) => one[0] - other[0]);
  const xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
  const span = (values) => { const low = Math.min(...values), high = Math.max(...values); return high > low ? [low, high] : [low - 1, high + 1]; };
  const [x0, x1] = span(xs), [y0, y1] = span(ys);
  const x = (value) => left + ((width - left - 8) * (value - x0)) / (x1 - x0);
  const y = (value) => 8 + (height - bottom - 16) * (1 - (value - y0) / (y1 - y0));
  const made = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${figure.y} over ${figure.x}` });
  made.append(drawn("path", { class: "axis", d: `M${left} 0V${height - bottom}H${width}` }));
  const short = (value) => (Math.abs(value) >= 1000 ? value.toFixed(0) : value.toPrecision(3));
  made.append(drawn("text", { x: 0, y: 12 }, short(y1)), drawn("text", { x: 0, y: height - bottom }, short(y0)));
  made.append(drawn("text", { x: left, y: height - bottom + 12 }, short(x0)), drawn("text", { x: width - 36, y: height - bottom + 12 }, short(x1)));
  made.append(drawn("text", { x: left, y: height - 3 }, `${figure.y} over ${figure.x}`));
  made.append(drawn("path", { class: "power", d: points.map((point, place) => `${place ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join("") }));
  for (const point of points) made.append(drawn("circle", { class: "dot", r: 2.5, cx: x(point[0]), cy: y(point[1]) }));
  return made;
};

const jobCard = (job, live) => {
  const indices = live.gpus.filter((gpu) => (job.gpus || []).includes(gpu.uuid)).map((gpu) => gpu.index);
  const saved = known(job.saved_energy_j);
  const money = known(job.saved_money) ? job.saved_money.toFixed(Math.abs(job.saved_money) < 1 ? 4 : 2) + " " + (job.currency || "") : null;
  const where = indices.length ? " on GPU " + indices.join(", ") : "";
  return element("article", { class: "card" }, element("h3", {}, `${job.verb} of ${job.user} (process ${job.pid})${where}`),
    job.phase ? element("div", { class: "muted" }, job.phase) : null,
    rows([
      ["Runs for", duration(job.elapsed_s)],
      ["Speed", known(job.items_per_s) ? show(job.items_per_s, "items/s", 1) : "unknown"],
      ["Energy of an item", known(job.energy_per_item_j) ? show(job.energy_per_item_j, "J", 3) : "unknown"],
      ["Keeps power below", known(job.cap_w) ? show(job.cap_w, "W") : null],
      ["Saved energy", saved ? energy(job.saved_energy_j) : null],
      ["Saved money", money],
    ]),
    job.figure && job.figure.points.length > 1 ? pointFigure(job.figure) : null);
};

const leaseTable = (live) => {
  if (!live.leases.length) return element("p", { class: "muted" }, "Nobody has leased a GPU: all settings are the machine's own.");
  const head = element("tr", {}, ...["GPU", "Owner", "Settings", "Since", "Until", "Energy"].map((name) => element("th", { scope: "col" }, name)));
  const body = live.leases.map((lease) => {
    const gpu = live.gpus.find((one) => one.uuid === lease.gpu);
    const owner = lease.user + (lease.job ? ", job " + lease.job : lease.pid ? ", process " + lease.pid : "");
    const until = known(lease.left_s) ? "at most " + new Date((live.unix_s + lease.left_s) * 1000).toLocaleString() : "it is released";
    return element("tr", {}, element("td", {}, gpu ? String(gpu.index) : lease.gpu), element("td", {}, owner),
      element("td", {}, (lease.kind === "ceiling" ? "ceiling: " : "") + lease.settings), element("td", {}, duration(lease.age_s) + " ago"),
      element("td", {}, until), element("td", { class: "number" }, known(lease.energy_j) ? energy(lease.energy_j) : "shared or unknown"));
  });
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
};

const status = document.getElementById("status");
const fill = (live) => {
  document.getElementById("gpus").replaceChildren(...live.gpus.map(gpuCard));
  const jobs = live.jobs.map((job) => jobCard(job, live));
  const none = element("p", { class: "muted" }, "No job of Sweetspot reports to the service.");
  document.getElementById("jobs").replaceChildren(...(jobs.length ? jobs : [none]));
  document.getElementById("leases").replaceChildren(leaseTable(live));
  const total = live.gpus.reduce((sum, gpu) => sum + (gpu.power_w || 0), 0);
  status.className = "";
  status.textContent = `${live.host || "This machine"}: ${total.toFixed(0)} W on ${live.gpus.length} GPU${live.gpus.length === 1 ? "" : "s"}, ${new Date(live.unix_s * 1000).toLocaleTimeString()}. This page only shows; it sets nothing.`;
};
const update = async () => {
  try {
    const answer = await fetch("/live", { cache: "no-store" });
    if (!answer.ok) throw new Error("status " + answer.status);
    fill(await answer.json());
  } catch (problem) {
    status.className = "stale";
    status.textContent = "The service does not answer (" + problem.message + "): these numbers are old. Trying again.";
  }
  setTimeout(update, document.hidden ? 5000 : 1000);
};
update();
