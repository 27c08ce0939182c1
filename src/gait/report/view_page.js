"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
const floats = (text) => new Float32Array(bytes(text));
const n = data.frames, t = floats(data.t), legs = data.legs.length, points = data.points;
const skeleton = new Int16Array(bytes(data.skeleton)), flags = new Uint8Array(bytes(data.flags));
const tracks = data.tracks.map((one) => {
  const track = { name: one.name, colour: one.colour, on: true, pos: floats(one.pos), quat: floats(one.quat), vel: floats(one.vel) };
  track.std = one.std ? floats(one.std) : null;
  track.ratio = one.ratio ? floats(one.ratio) : null;
  track.angles = angles(track.quat);
  return track;
});
const truth = tracks.find((one) => one.name === "truth");
const end = t[n - 1];
const state = { at: 0, from: 0, to: end, playing: false, yaw: 0.9, pitch: 0.42, zoom: 1, x: 0, y: 0 };
window.view = { state, tracks, data };

function angles(quat) {
  const out = new Float32Array(3 * n), deg = 180 / Math.PI;
  for (let i = 0; i < n; i++) {
    const [w, x, y, z] = quat.subarray(4 * i, 4 * i + 4);
    out[3 * i] = deg * Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y));
    out[3 * i + 1] = deg * Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x))));
    out[3 * i + 2] = deg * Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
  }
  return out;
}
function frame(time) {
  let low = 0, high = n - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (t[middle] <= time) low = middle; else high = middle - 1;
  }
  return low;
}
function rotate(q, o, v) {
  const w = q[o], x = q[o + 1], y = q[o + 2], z = q[o + 3];
  const a = 2 * (y * v[2] - z * v[1]), b = 2 * (z * v[0] - x * v[2]), c = 2 * (x * v[1] - y * v[0]);
  return [v[0] + w * a + y * c - z * b, v[1] + w * b + z * a - x * c, v[2] + w * c + x * b - y * a];
}
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// The colour of text stands for black, which a dark page could not show.
const ink = (colour) => (colour === "#000000" ? css("--ink") : colour);
function fit(canvas) {
  const ratio = window.devicePixelRatio || 1, box = canvas.parentElement.getBoundingClientRect();
  const width = Math.max(1, Math.round(box.width * ratio)), height = Math.max(1, Math.round(box.height * ratio));
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  return [pen, box.width, box.height];
}

// The robot in 3D

const shown = () => tracks.find((one) => one.on && one !== truth) || truth || tracks[0];
function scene() {
  const [pen, width, height] = fit($("scene")), i = frame(state.at), main = shown();
  const centre = Array.from(main.pos.subarray(3 * i, 3 * i + 3));
  if (!$("follow").checked) { centre[0] = state.x; centre[1] = state.y; } else { state.x = centre[0]; state.y = centre[1]; }
  const scale = 0.85 * Math.min(width, height) * state.zoom;
  const cy = Math.cos(state.yaw), sy = Math.sin(state.yaw), cp = Math.cos(state.pitch), sp = Math.sin(state.pitch);
  const project = (p) => {
    const x = p[0] - centre[0], y = p[1] - centre[1], z = p[2] - centre[2] + 0.1;
    const right = -sy * x + cy * y, depth = cy * x + sy * y;
    const far = 1.9 / Math.max(0.3, 1.9 - 0.35 * (cp * depth + sp * z));
    return [width / 2 + scale * far * right, height / 2 - scale * far * (cp * z - sp * depth)];
  };
  const line = (list, colour, thick, alpha) => {
    pen.beginPath();
    list.forEach((p, k) => { const [x, y] = project(p); if (k) pen.lineTo(x, y); else pen.moveTo(x, y); });
    pen.strokeStyle = colour; pen.lineWidth = thick; pen.globalAlpha = alpha; pen.lineJoin = pen.lineCap = "round";
    pen.stroke(); pen.globalAlpha = 1;
  };
  const ground = floor(main, i), gx = Math.round(2 * centre[0]) / 2, gy = Math.round(2 * centre[1]) / 2;
  for (let k = -4; k <= 4; k++) {
    line([[gx + k / 2, gy - 2, ground], [gx + k / 2, gy + 2, ground]], css("--line"), 1, 1);
    line([[gx - 2, gy + k / 2, ground], [gx + 2, gy + k / 2, ground]], css("--line"), 1, 1);
  }
  for (const track of tracks) if (track.on) path(track, i, line);
  if (truth && truth.on && truth !== main) body(truth, i, line, 1, 0.35);
  body(main, i, line, 1.6, 1);
  for (let leg = 0; leg < legs; leg++) {
    const list = [];
    for (let k = 0; k < points; k++) {
      const o = 3 * ((i * legs + leg) * points + k);
      const p = rotate(main.quat, 4 * i, [skeleton[o] / 1e3, skeleton[o + 1] / 1e3, skeleton[o + 2] / 1e3]);
      list.push([p[0] + main.pos[3 * i], p[1] + main.pos[3 * i + 1], p[2] + main.pos[3 * i + 2]]);
    }
    const bits = flags[i * legs + leg], stale = bits & 4, colour = stale ? css("--fault") : ink(main.colour);
    line(list, colour, 5, stale ? 0.6 : 1);
    const [x, y] = project(list[points - 1]);
    pen.beginPath(); pen.arc(x, y, bits & 2 ? 9 : 6, 0, 7);
    pen.fillStyle = bits & 2 ? css("--slip") : bits & 1 ? css("--ink") : css("--page"); pen.fill();
    pen.strokeStyle = bits & 2 ? css("--slip") : css("--ink"); pen.lineWidth = 1.5; pen.stroke();
    pen.fillStyle = css("--soft"); pen.font = "11px system-ui, sans-serif"; pen.fillText(data.legs[leg], x + 10, y + 4);
  }
  arrow(main, i, project, pen);
  readout(i, main);
}
function floor(track, i) {
  let low = 0;
  for (let leg = 0; leg < legs; leg++) {
    const o = 3 * ((i * legs + leg) * points + points - 1);
    low = Math.min(low, rotate(track.quat, 4 * i, [skeleton[o] / 1e3, skeleton[o + 1] / 1e3, skeleton[o + 2] / 1e3])[2]);
  }
  return track.pos[3 * i + 2] + low - data.radius;
}
function path(track, i, line) {
  const near = [], step = Math.max(1, Math.floor(n / 2000));
  for (let k = 0; k < n; k += step) {
    const p = track.pos.subarray(3 * k, 3 * k + 3);
    // Only the part in sight: what is far away would cross the eye.
    if (Math.hypot(p[0] - state.x, p[1] - state.y) < 2.5) near.push([p[0], p[1], p[2]]);
    else if (near.length) { if (near.length > 1) line(near, ink(track.colour), 1.2, 0.7); near.length = 0; }
  }
  if (near.length > 1) line(near, ink(track.colour), 1.2, 0.7);
}
function body(track, i, line, thick, alpha) {
  const [a, b, c] = data.base.map((one) => one / 2), corner = (x, y, z) => {
    const p = rotate(track.quat, 4 * i, [x * a, y * b, z * c]);
    return [p[0] + track.pos[3 * i], p[1] + track.pos[3 * i + 1], p[2] + track.pos[3 * i + 2]];
  };
  for (const z of [-1, 1]) line([corner(1, 1, z), corner(1, -1, z), corner(-1, -1, z), corner(-1, 1, z), corner(1, 1, z)], ink(track.colour), thick, alpha);
  for (const x of [-1, 1]) for (const y of [-1, 1]) line([corner(x, y, -1), corner(x, y, 1)], ink(track.colour), thick, alpha);
}
function arrow(track, i, project, pen) {
  const v = rotate(track.quat, 4 * i, Array.from(track.vel.subarray(3 * i, 3 * i + 3)));
  const from = Array.from(track.pos.subarray(3 * i, 3 * i + 3)), to = from.map((one, k) => one + 0.6 * v[k]);
  const [x0, y0] = project(from), [x1, y1] = project(to), size = Math.hypot(x1 - x0, y1 - y0);
  if (size < 4) return;
  const ux = (x1 - x0) / size, uy = (y1 - y0) / size;
  pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1);
  pen.moveTo(x1 - 9 * ux - 5 * uy, y1 - 9 * uy + 5 * ux); pen.lineTo(x1, y1); pen.lineTo(x1 - 9 * ux + 5 * uy, y1 - 9 * uy - 5 * ux);
  pen.strokeStyle = "#d55e00"; pen.lineWidth = 2.5; pen.stroke();
}
function readout(i, main) {
  const show = (one) => (one < 0 ? "" : " ") + one.toFixed(3);
  const lines = [`t ${t[i].toFixed(2)} s`.padEnd(10) + " forward left   up"];
  const narrow = innerWidth < 700;
  for (const track of tracks) {
    if (!track.on || (narrow && track !== main && track !== truth)) continue;
    const [x, y, z] = track.vel.subarray(3 * i, 3 * i + 3);
    lines.push(`${track.name.padEnd(9)} ${show(x)} ${show(y)} ${show(z)} m/s`);
  }
  const [roll, pitch, yaw] = main.angles.subarray(3 * i, 3 * i + 3);
  lines.push(`roll ${roll.toFixed(1)}  pitch ${pitch.toFixed(1)}  yaw ${yaw.toFixed(1)} deg`);
  $("readout").textContent = lines.join("\n");
}

// Plots

const panels = [
  { label: "forward, m/s", get: (one, i) => one.vel[3 * i], band: 0 },
  { label: "left, m/s", get: (one, i) => one.vel[3 * i + 1], band: 1 },
  { label: "up, m/s", get: (one, i) => one.vel[3 * i + 2], band: 2 },
  { label: "roll, deg", get: (one, i) => one.angles[3 * i] },
  { label: "pitch, deg", get: (one, i) => one.angles[3 * i + 1] },
  { label: "height, m", get: (one, i) => one.pos[3 * i + 2] },
  { label: "test ratio", get: (one, i) => (one.ratio ? one.ratio[i] : NaN) },
];
const left = 66, right = 10, above = 6, bottom = 22;
let plotted = [0, 0];
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw)), steps = [1, 2, 5, 10];
  let step = power * steps.find((one) => one * power >= raw);
  // One number is no scale.
  const next = () => Math.round(step / 10 ** Math.floor(Math.log10(step) + 1e-9)) === 5 ? step / 2.5 : step / 2;
  while (Math.floor(high / step) - Math.ceil(low / step) < 1) step = next();
  const found = [];
  for (let one = Math.ceil(low / step) * step; one <= high + 1e-9 * step; one += step) found.push(Math.abs(one) < 1e-9 * step ? 0 : one);
  return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
}
const across = (time, width) => left + ((time - state.from) / (state.to - state.from)) * (width - left - right);
function curves() {
  const [pen, width, height] = fit($("curves"));
  plotted = [width, height];
  const first = Math.max(0, frame(state.from)), last = Math.min(n - 1, frame(state.to) + 1);
  const tall = (height - above - bottom) / panels.length;
  pen.font = "11px system-ui, sans-serif";
  const [times, digits] = ticks(state.from, state.to, Math.max(2, Math.floor((width - left - right) / 90)));
  marks(pen, width, height);
  panels.forEach((panel, k) => {
    // In low panels the label stands in a line of its own above the curves, not beside them.
    const flat = tall < 80, y0 = above + k * tall + (flat ? 13 : 0), y1 = above + (k + 1) * tall - 6;
    let low = Infinity, high = -Infinity;
    for (const track of tracks) {
      if (!track.on) continue;
      for (let i = first; i <= last; i++) { const one = panel.get(track, i); if (one < low) low = one; if (one > high) high = one; }
    }
    if (!(low <= high)) return;
    const spare = Math.max(0.06 * (high - low), 0.01); low -= spare; high += spare;
    const up = (one) => y1 - ((one - low) / (high - low)) * (y1 - y0);
    pen.strokeStyle = css("--line"); pen.lineWidth = 1; pen.fillStyle = css("--soft"); pen.textAlign = "right"; pen.textBaseline = "middle";
    // Not at the edge, where the next panel has a label of its own.
    const pixel = (high - low) / (y1 - y0);
    const [values, places] = ticks(low + (flat ? 0 : 2) * pixel, high - (flat ? 0 : 5) * pixel, Math.max(2, Math.floor((y1 - y0) / 26)));
    for (const one of values) {
      pen.beginPath(); pen.moveTo(left, up(one)); pen.lineTo(width - right, up(one)); pen.stroke();
      pen.fillText(one.toFixed(places), left - 5, up(one));
    }
    pen.save(); pen.beginPath(); pen.rect(left, y0, width - left - right, y1 - y0); pen.clip();
    // Ground truth on top, so that it is seen where estimates agree with it.
    for (const track of [...tracks.filter((one) => one !== truth), truth]) if (track && track.on) curve(pen, panel, track, first, last, width, up);
    pen.restore();
    pen.save(); pen.fillStyle = css("--ink");
    if (flat) { pen.textAlign = "left"; pen.fillText(panel.label, left + 4, y0 - 7); }
    else { pen.translate(10, (y0 + y1) / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center"; pen.fillText(panel.label, 0, 0); }
    pen.restore();
  });
  pen.fillStyle = css("--soft"); pen.textAlign = "center"; pen.textBaseline = "top";
  for (const one of times) pen.fillText(one.toFixed(digits) + " s", across(one, width), height - bottom + 4);
  pointer();
}
function curve(pen, panel, track, first, last, width, up) {
  const colour = ink(track.colour);
  if (panel.band !== undefined && track.std && track === shown()) {
    pen.beginPath();
    for (let i = first; i <= last; i++) pen.lineTo(across(t[i], width), up(panel.get(track, i) + 2 * track.std[3 * i + panel.band]));
    for (let i = last; i >= first; i--) pen.lineTo(across(t[i], width), up(panel.get(track, i) - 2 * track.std[3 * i + panel.band]));
    pen.globalAlpha = 0.18; pen.fillStyle = colour; pen.fill(); pen.globalAlpha = 1;
  }
  // One vertical stroke a pixel where samples are closer than pixels.
  pen.beginPath(); pen.strokeStyle = colour; pen.lineWidth = track === truth ? 1 : 1.4;
  let column = -1, low = 0, high = 0;
  for (let i = first; i <= last; i++) {
    const x = across(t[i], width), y = up(panel.get(track, i));
    if (Number.isNaN(y)) continue;
    if (Math.floor(x) === column) {
      if (y < low) { low = y; pen.lineTo(x, y); } else if (y > high) { high = y; pen.lineTo(x, y); }
    } else { pen.lineTo(x, y); column = Math.floor(x); low = high = y; }
  }
  pen.stroke();
}
function marks(pen, width, height) {
  for (const event of data.events) {
    const a = Math.max(left, across(event.start, width)), b = Math.min(width - right, Math.max(across(event.end, width), across(event.start, width) + 1.5));
    if (b < left || a > width - right) continue;
    pen.fillStyle = css(`--${event.kind}`); pen.globalAlpha = 0.22; pen.fillRect(a, above, b - a, height - above - bottom);
    pen.globalAlpha = 1; pen.fillRect(a, height - bottom - 3, b - a, 3);
  }
}
function pointer() {
  const [pen, width, height] = fit($("cursor"));
  const x = across(state.at, width);
  if (x < left - 1 || x > width - right + 1) return;
  pen.strokeStyle = css("--link"); pen.lineWidth = 1.2;
  pen.beginPath(); pen.moveTo(x, above); pen.lineTo(x, height - bottom); pen.stroke();
}

// Time

function seek(time) {
  state.at = Math.max(0, Math.min(end, time));
  $("time").value = (1000 * state.at) / (end || 1);
  $("clock").textContent = `${state.at.toFixed(2)} s`;
  if (state.at < state.from || state.at > state.to) {
    const span = state.to - state.from;
    state.from = Math.max(0, Math.min(state.at - 0.1 * span, end - span)); state.to = state.from + span;
    curves();
  } else pointer();
  scene();
}
let before = 0;
function tick(now) {
  if (!state.playing) return;
  seek(state.at + (Math.min(100, now - before) / 1000) * Number($("speed").value));
  before = now;
  if (state.at >= end) play(false); else requestAnimationFrame(tick);
}
function play(on) {
  state.playing = on;
  $("play").innerHTML = on ? "&#10074;&#10074;" : "&#9654;";
  $("play").setAttribute("aria-label", on ? "Pause" : "Play");
  if (on) { if (state.at >= end) seek(0); before = performance.now(); requestAnimationFrame(tick); }
}
function zoom(about, factor) {
  const span = Math.min(end, Math.max(0.2, (state.to - state.from) * factor)), share = (about - state.from) / (state.to - state.from);
  state.from = Math.max(0, Math.min(about - share * span, end - span)); state.to = state.from + span;
  curves();
}

// Hands: one finger or the mouse, two fingers, the wheel.

function gestures(canvas, moved, pinched) {
  const fingers = new Map();
  let apart = 0;
  const gap = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
  const middle = () => [...fingers.values()].reduce((sum, one) => sum + one.x / fingers.size, 0);
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (fingers.size === 2) apart = gap(); else moved(event, 0, 0, true);
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) { if (event.pointerType === "mouse") moved(event, 0, 0, false); return; }
    const dx = event.offsetX - last.x, dy = event.offsetY - last.y;
    last.x = event.offsetX; last.y = event.offsetY;
    if (fingers.size === 2) { const now = gap(); pinched(apart / Math.max(now, 1), middle()); apart = now; } else moved(event, dx, dy, true);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); pinched(Math.exp(0.0015 * event.deltaY), event.offsetX); }, { passive: false });
}
const timeAt = (x) => state.from + ((x - left) / (plotted[0] - left - right)) * (state.to - state.from);
gestures($("scene"), (event, dx, dy, down) => {
  if (!down) return;
  state.yaw -= 0.008 * dx; state.pitch = Math.max(-0.2, Math.min(1.5, state.pitch + 0.008 * dy)); scene();
}, (factor) => { state.zoom = Math.max(0.2, Math.min(8, state.zoom / factor)); scene(); });
gestures($("cursor"), (event, dx, dy, down) => {
  if (down && event.shiftKey) {
    const span = state.to - state.from, shift = (-dx / (plotted[0] - left - right)) * span;
    state.from = Math.max(0, Math.min(state.from + shift, end - span)); state.to = state.from + span; curves();
  } else if (down || !state.playing) seek(timeAt(event.offsetX));
}, (factor, x) => zoom(timeAt(x), factor));
$("cursor").addEventListener("dblclick", () => $("whole").click());
$("whole").addEventListener("click", () => { state.from = 0; state.to = end; curves(); });
$("play").addEventListener("click", () => play(!state.playing));
$("time").addEventListener("input", () => seek((Number($("time").value) / 1000) * end));
$("follow").addEventListener("change", scene);
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, button") && event.key !== "Escape") return;
  if (event.key === " ") { event.preventDefault(); play(!state.playing); }
  if (event.key === "ArrowRight") seek(t[Math.min(n - 1, frame(state.at) + 1)]);
  if (event.key === "ArrowLeft") seek(t[Math.max(0, frame(state.at) - 1)]);
});
for (const track of tracks) {
  const label = document.createElement("label"), box = document.createElement("input"), line = document.createElement("i");
  box.type = "checkbox"; box.checked = true; line.style.background = ink(track.colour);
  box.addEventListener("change", () => { track.on = box.checked; curves(); scene(); });
  label.append(box, line, track.name === "truth" ? "ground truth" : track.name);
  $("tracks").append(label);
}
for (const event of data.events) {
  const button = document.createElement("button");
  button.type = "button"; button.className = event.kind; button.textContent = `${event.start.toFixed(1)} s ${event.words}`;
  button.addEventListener("click", () => {
    const span = Math.min(end, Math.max(4, 3 * (event.end - event.start)));
    state.from = Math.max(0, Math.min(event.start - 0.4 * span, end - span)); state.to = state.from + span;
    curves(); seek(event.start);
  });
  $("events").append(button);
}
if (!data.events.length) $("events").textContent = data.uneventful;
const draw = () => { curves(); scene(); };
new ResizeObserver(draw).observe($("plots"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  document.querySelectorAll("#tracks i").forEach((line, k) => { line.style.background = ink(tracks[k].colour); });
  draw();
});
seek(0);
document.documentElement.dataset.ready = "1";
