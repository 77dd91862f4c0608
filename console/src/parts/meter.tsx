import { classNames } from './class-names.ts';

/** A usage bar with its percentage. @param share 0 to 1; null if unknown */
export function Meter({ share }: { readonly share: number | null }) {
  if (share === null || !Number.isFinite(share)) return <span className="text-muted">–</span>;
  const percent = Math.round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <span className="flex w-full items-center gap-2">
      <span aria-hidden="true" className="h-1.5 min-w-6 flex-1 overflow-hidden rounded-full bg-faint">
        <span
          className={classNames(
            'block h-full rounded-full',
            percent >= 95 ? 'bg-bad' : percent >= 80 ? 'bg-warn-mark' : 'bg-chart',
          )}
          style={{ width: `${percent}%` }}
        />
      </span>
      <span className="tabular w-8 shrink-0 text-right text-muted text-xs">{percent}%</span>
    </span>
  );
}
