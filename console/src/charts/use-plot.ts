import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef, useState } from 'react';
import UPlot from 'uplot';
import type { Colors } from './colors.ts';
import { aloneAt, amountText, topOf, type Unit, type Values } from './series.ts';

/** Pixels. */
export const height = 150;
const minWidth = 120;
/** Minimum length of a selected range in seconds. A shorter selection is ignored. */
const minRange = 120;
/** Resolves colors, because a canvas cannot use CSS variables. */
const font = '11px "Inter Variable", ui-sans-serif, system-ui, sans-serif';

export interface Line {
  readonly name: string;
  readonly values: Values;
}

/** Time range in Unix seconds. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface PlotProps {
  readonly unit: Unit;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly range: Range;
  /** Fixed upper end of the axis; by default, it follows the values. */
  readonly max?: number;
  /** Charts with the same key share a cursor. */
  readonly sync: string;
  readonly onRange: (range: Range) => void;
  readonly onReset: () => void;
}

/**
 * Draws a chart into the element of the returned ref `container`. The returned `at` is the index of the cursor, or null.
 */
export function usePlot({ unit, times, lines, range, max, sync, onRange, onReset }: PlotProps, colors: Colors) {
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const data = [times, ...lines.map(({ values }) => values)] as UPlot.AlignedData;
  const latest = useRef({ onRange, onReset, range, data });
  latest.current = { onRange, onReset, range, data };
  const names = lines.map(({ name }) => name).join('\n');

  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const widthNow = () => Math.max(minWidth, element.clientWidth);
    const made = new UPlot(
      {
        ...{ height, width: widthNow(), padding: [8, 8, 0, 0], legend: { show: false } },
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: false },
          sync: { key: sync, setSeries: false },
          points: { size: 6 },
        },
        scales: {
          x: { range: () => [latest.current.range.from, latest.current.range.to] },
          y: { range: (_, __, top) => [0, max ?? topOf(top, unit)] },
        },
        axes: axesOf(colors, unit),
        series: [{}, ...names.split('\n').map((label, index) => seriesOf(label, index, colors))],
        hooks: {
          setCursor: [({ cursor }) => setAt(cursor.idx ?? null)],
          setSelect: [
            (self) => {
              const { left, width } = self.select;
              if (width < 4) return;
              const from = self.posToVal(left, 'x');
              const to = self.posToVal(left + width, 'x');
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              if (to - from >= minRange) latest.current.onRange({ from: Math.floor(from), to: Math.ceil(to) });
            },
          ],
        },
      },
      latest.current.data,
      element,
    );
    plot.current = made;
    made.over.addEventListener('dblclick', () => latest.current.onReset());
    const observer = new ResizeObserver(() => made.setSize({ width: widthNow(), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [colors, max, sync, unit, names]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` consists of `times` and `lines`
  useEffect(() => plot.current?.setData(data), [times, lines, range.from, range.to]);
  return { container, plot, at };
}

/** Label distances for amounts in bytes, so that labels are round numbers with binary prefixes. */
const byteSteps = Array.from({ length: 52 }, (_, exponent) => 2 ** exponent);

function axesOf(colors: Colors, unit: Unit): UPlot.Axis[] {
  const axis = { stroke: colors.text, font, grid: { stroke: colors.grid, width: 1 }, ticks: { show: false } };
  return [
    { ...axis, space: 70, size: 26, values: timeFormat },
    {
      ...{ ...axis, size: 64, space: 34 },
      ...(unit.startsWith('B') ? { incrs: byteSteps } : {}),
      values: (_, ticks) => ticks.map((tick) => amountText(tick, unit)),
    },
  ];
}

function seriesOf(label: string, index: number, colors: Colors): UPlot.Series {
  const color = colors.line[index % colors.line.length] as string;
  return {
    label,
    stroke: color,
    width: 1.5,
    ...(index === 0 ? { fill: (plot: UPlot) => shade(plot, color) } : {}),
    // A value between two gaps is drawn as a point.
    points: { show: true, size: 4, fill: color, filter: (plot, at) => aloneAt(plot.data[at] as Values) },
    spanGaps: false,
  };
}

const hour = new Intl.DateTimeFormat(undefined, { hour: 'numeric' });
const clock = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'short' });

/**
 * Formats a day such as `Sun 22`. Locales other than English may place the number first, which could be mistaken for a
 * month.
 */
const dayText = (date: Date): string => `${weekday.format(date)} ${date.getDate()}`;

/** Formats the labels of the time axis, such as `6 PM`, `6:30 PM`, or `Sun 22`. */

const timeFormat: UPlot.Axis.DynamicValues = (_, ticks, __, ___, increment) =>
  ticks.map((tick) => {
    const date = new Date(tick * 1000);
    if (increment >= 86_400 || (date.getHours() === 0 && date.getMinutes() === 0)) return dayText(date);
    return (increment % 3_600 === 0 ? hour : clock).format(date);
  });

/** Returns a gradient of the line's color that fades toward the bottom. */
function shade({ ctx, bbox }: UPlot, color: string): CanvasGradient | string {
  if (!Number.isFinite(bbox.top) || bbox.height <= 0) return 'transparent';
  const gradient = ctx.createLinearGradient(0, bbox.top, 0, bbox.top + bbox.height);
  const soft = (share: number) => `color-mix(in srgb, ${color} ${share}%, transparent)`;
  try {
    gradient.addColorStop(0, soft(32));
    gradient.addColorStop(1, soft(6));
  } catch {
    // Old browsers do not support color-mix(), so they do not fill the area below the line.
    return 'transparent';
  }
  return gradient;
}
