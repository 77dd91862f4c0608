import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { loadCode } from '../../api/live/load-code.ts';
import { samplesQuery } from '../../api/metrics.ts';
import { stepFor } from '../../charts/series.ts';
import { Button } from '../../parts/button.tsx';
import { classNames } from '../../parts/class-names.ts';
import { Empty, Failure, Skeleton } from '../../parts/states.tsx';
import { absoluteTime, momentNow } from '../../parts/time.tsx';
import { useUrlState } from '../../parts/url-state.ts';

const MetricCharts = lazy(() => loadCode(() => import('../../charts/metric-charts.tsx')));

const ranges = { '1h': 3_600, '6h': 6 * 3_600, '24h': 86_400, '7d': 7 * 86_400, '30d': 30 * 86_400 } as const;
type RangeName = keyof typeof ranges;
const names: Record<RangeName, string> = { '1h': 'Hour', '6h': '6 hours', '24h': 'Day', '7d': 'Week', '30d': 'Month' };

export function MetricsTab({ agent }: { readonly agent: Agent }) {
  const [range, setRange] = useUrlState<RangeName>('range', '24h');
  const [zoom, setZoom] = useUrlState('zoom', '');
  const seconds = ranges[range] ?? ranges['24h'];
  const zoomed = zoomOf(zoom);
  // Zooming in increases the resolution. The query always ends at the current time, so the number of points is limited.
  const now = Math.floor(momentNow() / 1000);
  const since = zoomed === null ? seconds : Math.ceil(Math.max(seconds, now - zoomed.from) / 3_600) * 3_600;
  const step = stepFor(zoomed === null ? seconds : Math.max(zoomed.to - zoomed.from, since / 8));
  const { data, error, refetch } = useQuery(samplesQuery(agent.node_id, since, step));
  const shown = zoomed ?? { from: (data?.at ?? now) - seconds, to: data?.at ?? now };
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-2">
        <div role="group" aria-label="Range" className="flex rounded-md border bg-surface p-0.5">
          {(Object.keys(ranges) as RangeName[]).map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={zoomed === null && range === name}
              onClick={() => {
                if (zoom === '') setRange(name);
                else {
                  setZoom('');
                  // Deferred, because two updates in the same task would both start from the current URL, and the
                  // second would undo the first.
                  window.setTimeout(() => setRange(name));
                }
              }}
              className={classNames(
                'h-6.5 rounded px-2.5 text-xs',
                zoomed === null && range === name
                  ? 'bg-accent-soft font-medium text-accent'
                  : 'text-muted hover:bg-hover',
              )}
            >
              {names[name]}
            </button>
          ))}
        </div>
        {zoomed !== null && (
          <>
            <span className="text-muted text-xs">
              {absoluteTime(zoomed.from * 1000)} – {absoluteTime(zoomed.to * 1000)}
            </span>
            <Button small onClick={() => setZoom('')}>
              Show all
            </Button>
          </>
        )}
        <span className="ml-auto text-muted text-xs max-md:hidden">Drag to zoom in, double-click to reset.</span>
      </div>
      {error !== null && data === undefined ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data === undefined ? (
        <ChartSkeletons />
      ) : data.samples.length === 0 ? (
        <Empty title="No samples in this range">
          {agent.connected
            ? 'Agents send samples once a minute by default. The first samples arrive soon.'
            : 'The agent is offline. It sends its stored samples when it reconnects.'}
        </Empty>
      ) : (
        <Suspense fallback={<ChartSkeletons />}>
          <MetricCharts
            samples={data.samples}
            step={step}
            range={shown}
            onRange={({ from, to }) => setZoom(`${from}-${to}`)}
            onReset={() => zoom !== '' && setZoom('')}
          />
        </Suspense>
      )}
    </div>
  );
}

const ChartSkeletons = () => (
  <div role="status" aria-label="Loading metrics" className="grid gap-4 lg:grid-cols-2 2xl:grid-cols-3">
    {['cpu', 'memory', 'disk', 'load', 'network', 'processes'].map((name) => (
      <div key={name} className="h-[13.1rem] rounded-lg border bg-surface p-4">
        <Skeleton className="mb-4 h-3 w-24" />
        <Skeleton className="h-32 w-full" />
      </div>
    ))}
  </div>
);

/**
 * Parses a time range such as `1795000000-1795003600` (Unix seconds). Returns null if it is invalid or shorter than a
 * minute.
 */
function zoomOf(text: string): { readonly from: number; readonly to: number } | null {
  const match = /^(\d{1,12})-(\d{1,12})$/.exec(text);
  if (match === null) return null;
  const [from, to] = [Number(match[1]), Number(match[2])];
  return to - from >= 60 ? { from, to } : null;
}
