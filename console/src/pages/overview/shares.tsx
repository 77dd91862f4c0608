import { Link } from '@tanstack/react-router';
import { fills, Mark } from '../../parts/badge.tsx';
import { classNames } from '../../parts/class-names.ts';
import { countText } from '../../parts/count.ts';
import type { Share } from './attention.ts';

export interface ShareLink {
  readonly to: string;
  readonly search?: Readonly<Record<string, string>>;
}

/** A titled bar that shows proportions, with a count and a link for each. */
export function Shares<S extends Share>({
  title,
  label,
  shares,
  linkOf,
}: {
  readonly title: string;
  /** The list's accessible name. */
  readonly label: string;
  readonly shares: readonly S[];
  readonly linkOf: (share: S) => ShareLink;
}) {
  const total = Math.max(
    1,
    shares.reduce((sum, { count }) => sum + count, 0),
  );
  return (
    <div>
      <h3 className="mb-2 text-muted text-xs">{title}</h3>
      <div className="flex h-2.5 gap-px overflow-hidden rounded-full bg-raised" aria-hidden="true">
        {shares.map(
          ({ id, count, tone }) =>
            count > 0 && (
              <div
                key={id}
                className={classNames(fills[tone], 'transition-[width] duration-300')}
                style={{ width: `${(count / total) * 100}%`, minWidth: 3 }}
              />
            ),
        )}
      </div>
      <ul
        aria-label={label}
        className="mt-3 grid grid-cols-2 gap-1 sm:grid-cols-[repeat(auto-fill,minmax(6.75rem,1fr))]"
      >
        {shares.map((share) => {
          const { to, search } = linkOf(share);
          return (
            <li key={share.id}>
              <Link
                to={to as '/'}
                {...(search === undefined ? {} : { search: search as never })}
                className="-mx-1.5 block rounded-md px-1.5 py-1 hover:bg-hover"
              >
                <span className="flex items-center gap-1.5 whitespace-nowrap text-muted text-xs">
                  <Mark tone={share.tone} />
                  {share.label}
                </span>
                <span
                  className={classNames(
                    'tabular block font-semibold text-lg leading-6',
                    share.count === 0 && 'font-normal text-muted',
                  )}
                >
                  {countText(share.count)}
                </span>
              </Link>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
