/** A panel with its own vertical axis. All panels share the horizontal axis, which is in minutes. */
export interface Panel {
  title: string;
  unit: string;
  lines: readonly { name: string; points: readonly (readonly [minute: number, value: number])[] }[];
}

const width = 760;
const panelHeight = 150;
const left = 60;
const right = 150;
const top = 28;
const bottom = 26;
const colors = ['#2563eb', '#d97706', '#059669', '#7c3aed'];

/** Returns a round number that is at least the value: 1, 2, or 5 times a power of ten. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((step) => step * power >= value) ?? 10);
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
const rounded = (value: number): string => String(Math.round(value * 10) / 10);

/** Draws panels below each other as an SVG image. Vertical axes start at 0. Omits values that are not finite. */
export function lineGraph(panels: readonly Panel[]): string {
  const values = panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points));
  const minutes = roundUp(Math.max(0, ...values.map(([minute]) => minute)));
  const height = panels.length * panelHeight;
  const drawn = panels.map((panel, at) => panelOf(panel, at * panelHeight, minutes));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    `<title>${panels.map(({ title }) => escaped(title)).join('; ')}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...drawn.flat(),
    '</svg>',
    '',
  ].join('\n');
}

function panelOf({ title, unit, lines }: Panel, from: number, minutes: number): string[] {
  const max = roundUp(
    Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite)),
  );
  const [plotWidth, plotHeight] = [width - left - right, panelHeight - top - bottom];
  const x = (minute: number) => left + (minute / minutes) * plotWidth;
  const y = (value: number) => from + top + plotHeight - (value / max) * plotHeight;
  const text = (at: string, content: string) => `<text ${at} fill="#374151">${escaped(content)}</text>`;
  const grid = [0, 0.5, 1].flatMap((share) => [
    `<path d="M${left} ${rounded(y(share * max))}H${width - right}" stroke="#d1d5db"/>`,
    text(`x="${left - 6}" y="${rounded(y(share * max) + 4)}" text-anchor="end"`, (share * max).toLocaleString('en-US')),
  ]);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    text(
      `x="${rounded(x(share * minutes))}" y="${from + panelHeight - 10}" text-anchor="middle"`,
      `${(share * minutes).toLocaleString('en-US')} min`,
    ),
  );
  const drawn = lines.flatMap(({ name, points }, at) => {
    const color = colors[at % colors.length];
    const known = points.filter(([, value]) => Number.isFinite(value));
    const path = known.map(([minute, value]) => `${rounded(x(minute))} ${rounded(y(value))}`).join('L');
    return [
      ...(path === '' ? [] : [`<path d="M${path}" fill="none" stroke="${color}" stroke-width="1.5"/>`]),
      `<text x="${width - right + 10}" y="${from + top + 10 + at * 16}" fill="${color}">${escaped(name)}</text>`,
    ];
  });
  return [text(`x="${left}" y="${from + 16}" font-weight="bold"`, `${title}, ${unit}`), ...grid, ...ticks, ...drawn];
}
