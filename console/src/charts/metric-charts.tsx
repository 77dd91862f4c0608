import type { Sample } from '@muster/protocol';
import { useMemo } from 'react';
import { linesOf, type Unit } from './series.ts';
import { type Range, TimeChart } from './time-chart.tsx';

const charts: readonly {
  readonly title: string;
  readonly unit: Unit;
  readonly lines: readonly (readonly [name: string, of: string])[];
  readonly max?: number;
}[] = [
  { title: 'CPU', unit: '%', max: 100, lines: [['used', 'cpu']] },
  { title: 'Memory', unit: '%', max: 100, lines: [['used', 'memory']] },
  { title: 'Disk', unit: '%', max: 100, lines: [['used', 'disk']] },
  { title: 'Load', unit: '', lines: [['1 minute', 'load']] },
  {
    title: 'Network',
    unit: 'B/s',
    lines: [
      ['received', 'received'],
      ['sent', 'sent'],
    ],
  },
  { title: 'Processes', unit: '', lines: [['running', 'processes']] },
  { title: 'Swap', unit: 'B', lines: [['used', 'swap']] },
];

export default function MetricCharts({
  samples,
  step,
  range,
  onRange,
  onReset,
}: {
  readonly samples: readonly Sample[];
  /** Seconds between samples. */
  readonly step: number;
  readonly range: Range;
  readonly onRange: (range: Range) => void;
  readonly onReset: () => void;
}) {
  const drawn = useMemo(() => {
    const { times, values } = linesOf(samples, step);
    return (
      charts
        .map(({ lines, ...chart }) => ({
          ...chart,
          times,
          lines: lines.map(([name, of]) => ({ name, values: values[of] ?? [] })),
        }))
        // Omits the swap chart for a machine without swap.
        .filter(({ title, lines }) => title !== 'Swap' || lines[0]?.values.some((value) => value !== null && value > 0))
    );
  }, [samples, step]);
  return (
    <div className="grid gap-3 lg:grid-cols-2 2xl:grid-cols-3">
      {drawn.map((chart) => (
        <TimeChart key={chart.title} {...chart} range={range} sync="metrics" onRange={onRange} onReset={onReset} />
      ))}
    </div>
  );
}
