import { type KeyboardEvent, useId } from 'react';
import type UPlot from 'uplot';
import { useColors } from './colors.ts';
import { amountText, type Outline, outlineOf, type Unit } from './series.ts';
import { height, type PlotProps, usePlot } from './use-plot.ts';

export type { Range } from './use-plot.ts';

const timeAndDay = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

interface TimeChartProps extends PlotProps {
  readonly title: string;
}

/**
 * A line chart over time. Dragging selects a range, arrow keys move the cursor, `+` zooms in, and `-` resets the range.
 * Screen readers receive the values as text.
 */
export function TimeChart(props: TimeChartProps) {
  const { title, unit, times, lines, range } = props;
  const id = useId();
  const colors = useColors();
  const { container, plot, at } = usePlot(props, colors);
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    if (plot.current === null || times.length === 0) return;
    if (handleKey(event.key, plot.current, at, props)) event.preventDefault();
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
                  style={{ background: colors.line[index % colors.line.length] }}
                />
              )}
              {lines.length > 1 && <span className="text-muted">{name}</span>}
              <span className="font-medium">{amountText(at === null ? outline?.last : values[at], unit)}</span>
            </span>
          ))}
          {at !== null && times[at] !== undefined && (
            <span className="text-muted">{timeAndDay.format((times[at] as number) * 1000)}</span>
          )}
        </span>
      </header>
      <div
        ref={container}
        tabIndex={0}
        role="application"
        aria-roledescription="chart"
        aria-label={`${title}: arrow keys move the cursor, plus zooms in, minus zooms out`}
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

const steps: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };

/**
 * @param at index of the cursor
 * @returns whether the chart handles the key
 */
function handleKey(
  key: string,
  plot: UPlot,
  at: number | null,
  { times, range: { from, to }, onRange, onReset }: TimeChartProps,
): boolean {
  const step = steps[key];
  if (step !== undefined) {
    const next = Math.max(0, Math.min(times.length - 1, (at ?? times.length - 1) + step));
    plot.setCursor({ left: plot.valToPos(times[next] as number, 'x'), top: 10 });
  } else if (key === '+' || key === '=') {
    const middle = at === null ? (from + to) / 2 : (times[at] as number);
    const half = Math.max(60, (to - from) / 4);
    onRange({ from: Math.floor(Math.max(from, middle - half)), to: Math.ceil(Math.min(to, middle + half)) });
  } else if (key === '-' || key === 'Escape' || key === '0') {
    plot.setCursor({ left: -10, top: -10 });
    onReset();
  } else return false;
  return true;
}

function wordsOf(name: string | null, outline: Outline | null, unit: Unit): string {
  const text =
    outline === null
      ? 'no values'
      : `min ${amountText(outline.min, unit)}, avg ${amountText(outline.average, unit)}, max ${amountText(outline.max, unit)}`;
  return name === null ? text : `${name}: ${text}`;
}
