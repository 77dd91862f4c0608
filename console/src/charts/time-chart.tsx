import 'uplot/dist/uPlot.min.css';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import UPlot from 'uplot';
import { useColours } from './colours.ts';
import { aloneAt, amountText, type Outline, outlineOf, topOf, type Unit, type Values } from './series.ts';

export interface Line {
  readonly name: string;
  readonly values: Values;
}

export interface Range {
  /** Unix seconds. */
  readonly from: number;
  readonly to: number;
}

const height = 150;
const font = '11px ui-sans-serif, system-ui, sans-serif';

const moment = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

/**
 * Lines over a time. The cursor is shared with the other charts of the page; dragging chooses a range; the keyboard does
 * both (arrows walk, `+` comes nearer, `-` goes back). What it shows is also said in words.
 */
export function TimeChart({
  title,
  unit,
  times,
  lines,
  range,
  most,
  sync,
  onRange,
  onReset,
}: {
  readonly title: string;
  readonly unit: Unit;
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly range: Range;
  /** The top of the scale; without it as high as the values. */
  readonly most?: number;
  /** Charts of the same word move their cursors together. */
  readonly sync: string;
  readonly onRange: (range: Range) => void;
  readonly onReset: () => void;
}) {
  const id = useId();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const colours = useColours();
  const [at, setAt] = useState<number | null>(null);
  const latest = useRef({ onRange, onReset, range });
  latest.current = { onRange, onReset, range };
  const data = [times, ...lines.map(({ values }) => values)] as UPlot.AlignedData;
  const latestData = useRef(data);
  latestData.current = data;
  const names = lines.map(({ name }) => name).join('\n');

  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const axis = { stroke: colours.text, font, grid: { stroke: colours.grid, width: 1 }, ticks: { show: false } };
    const made = new UPlot(
      {
        width: Math.max(120, element.clientWidth),
        height,
        padding: [8, 8, 0, 0],
        legend: { show: false },
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: false },
          sync: { key: sync, setSeries: false },
          points: { size: 6 },
        },
        scales: {
          x: { range: () => [latest.current.range.from, latest.current.range.to] },
          y: { range: (_, __, max) => [0, most ?? topOf(max, unit)] },
        },
        axes: [
          { ...axis, space: 70, size: 26, values: timeFormat },
          { ...axis, size: 58, space: 34, values: (_, ticks) => ticks.map((tick) => amountText(tick, unit)) },
        ],
        series: [
          {},
          ...names.split('\n').map((label, index) => ({
            label,
            stroke: colours.line[index % colours.line.length] as string,
            width: 1.5,
            ...(index === 0 ? { fill: (plot: UPlot) => shade(plot, colours.line[0] as string) } : {}),
            // A line needs two: what stands alone is a point.
            points: {
              show: true,
              size: 4,
              fill: colours.line[index % colours.line.length] as string,
              filter: (plot: UPlot, at: number) => aloneAt(plot.data[at] as Values),
            },
            spanGaps: false,
          })),
        ],
        hooks: {
          setCursor: [({ cursor }) => setAt(cursor.idx ?? null)],
          setSelect: [
            (self) => {
              const { left, width } = self.select;
              if (width < 4) return;
              const from = self.posToVal(left, 'x');
              const to = self.posToVal(left + width, 'x');
              self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              if (to - from >= 120) latest.current.onRange({ from: Math.floor(from), to: Math.ceil(to) });
            },
          ],
        },
      },
      latestData.current,
      element,
    );
    plot.current = made;
    made.over.addEventListener('dblclick', () => latest.current.onReset());
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(120, element.clientWidth), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [colours, most, sync, unit, names]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the data are as new as their parts
  useEffect(() => plot.current?.setData(data), [times, lines, range.from, range.to]);

  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const self = plot.current;
    if (self === null || times.length === 0) return;
    const { from, to } = range;
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    const step = steps[event.key];
    if (step !== undefined) {
      const next = Math.max(0, Math.min(times.length - 1, (at ?? times.length - 1) + step));
      self.setCursor({ left: self.valToPos(times[next] as number, 'x'), top: 10 });
    } else if (event.key === '+' || event.key === '=') {
      const middle = at === null ? (from + to) / 2 : (times[at] as number);
      const half = Math.max(60, (to - from) / 4);
      onRange({ from: Math.floor(Math.max(from, middle - half)), to: Math.ceil(Math.min(to, middle + half)) });
    } else if (event.key === '-' || event.key === 'Escape' || event.key === '0') {
      self.setCursor({ left: -10, top: -10 });
      onReset();
    } else return;
    event.preventDefault();
  };

  const inRange = lines.map(({ name, values }) => ({
    name,
    values,
    outline: outlineOf(
      values.filter((_, index) => (times[index] as number) >= range.from && (times[index] as number) <= range.to),
    ),
  }));
  return (
    <section aria-labelledby={`${id}-title`} className="min-w-0 rounded-lg border bg-surface px-3 pt-2.5 pb-2">
      <header className="flex min-h-6 flex-wrap items-baseline gap-x-3 px-1">
        <h2 id={`${id}-title`} className="font-semibold text-sm">
          {title}
        </h2>
        <span className="tabular ml-auto flex flex-wrap gap-x-3 text-xs">
          {inRange.map(({ name, values, outline }, index) => (
            <span key={name} className="inline-flex items-center gap-1.5">
              {lines.length > 1 && (
                <span
                  aria-hidden="true"
                  className="h-0.5 w-3 rounded"
                  style={{ background: colours.line[index % colours.line.length] }}
                />
              )}
              {lines.length > 1 && <span className="text-muted">{name}</span>}
              <span className="font-medium">{amountText(at === null ? outline?.last : values[at], unit)}</span>
            </span>
          ))}
          {at !== null && times[at] !== undefined && (
            <span className="text-muted">{moment.format((times[at] as number) * 1000)}</span>
          )}
        </span>
      </header>
      <div
        ref={place}
        tabIndex={0}
        role="application"
        aria-roledescription="chart"
        aria-label={`${title}: arrow keys walk along it, plus comes nearer, minus goes back`}
        aria-describedby={`${id}-words`}
        onKeyDown={onKeyDown}
        className="mt-1 touch-pan-y rounded"
        style={{ height }}
      />
      <p id={`${id}-words`} className="tabular px-1 text-2xs text-muted">
        {inRange.map(({ name, outline }) => wordsOf(lines.length > 1 ? name : null, outline, unit)).join(' · ')}
      </p>
    </section>
  );
}

function wordsOf(name: string | null, outline: Outline | null, unit: Unit): string {
  const text =
    outline === null
      ? 'nothing was measured'
      : `min ${amountText(outline.min, unit)}, avg ${amountText(outline.average, unit)}, max ${amountText(outline.max, unit)}`;
  return name === null ? text : `${name}: ${text}`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric' });

const timeFormat: UPlot.Axis.DynamicValues = (_, ticks, __, ___, increment) =>
  ticks.map((tick) => {
    const date = new Date(tick * 1000);
    return increment >= 86_400 || (date.getHours() === 0 && date.getMinutes() === 0)
      ? day.format(date)
      : clock.format(date);
  });

/** The colour of the line, fading to nothing at the bottom. */
function shade({ ctx, bbox }: UPlot, colour: string): CanvasGradient | string {
  if (!Number.isFinite(bbox.top) || bbox.height <= 0) return 'transparent';
  const gradient = ctx.createLinearGradient(0, bbox.top, 0, bbox.top + bbox.height);
  const soft = (share: number) => `color-mix(in srgb, ${colour} ${share}%, transparent)`;
  try {
    gradient.addColorStop(0, soft(32));
    gradient.addColorStop(1, soft(6));
  } catch {
    // A browser whose canvas does not mix colours draws the line alone.
    return 'transparent';
  }
  return gradient;
}
