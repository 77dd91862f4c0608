import type { OperationStatus } from '@muster/protocol';
import type { Run } from '@muster/protocol/http';
import { statusText } from '../../../client/src/status-text.ts';
import { Dot, StateBadge, type Tone } from './badge.tsx';
import { classNames } from './class-names.ts';

export type WorkStatus = OperationStatus | Run['status'];

export const hasEnded = (status: WorkStatus): boolean => status !== 'queued' && status !== 'running';

const tones: Record<WorkStatus, Tone> = {
  queued: 'neutral',
  running: 'info',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'warn',
  interrupted: 'bad',
  expired: 'warn',
  halted: 'bad',
};

/** Statuses as choices of a filter. */
export const statusOptions = (statuses: readonly WorkStatus[]) =>
  statuses.map((value) => ({ value, label: statusText(value) }));

export function StatusBadge({ status }: { readonly status: WorkStatus }) {
  return (
    <StateBadge tone={tones[status]} live={status === 'running'}>
      {statusText(status)}
    </StateBadge>
  );
}

export function StatusDot({ status }: { readonly status: WorkStatus }) {
  return (
    <Dot tone={tones[status]} live={status === 'running'}>
      {statusText(status)}
    </Dot>
  );
}

/** The mark of a status, for rows that name their outcomes. Screen readers read the status. */
export const StatusMark = ({ status }: { readonly status: WorkStatus }) => (
  <span className="inline-flex shrink-0" title={statusText(status)}>
    <Dot tone={tones[status]} live={status === 'running'} />
    <span className="sr-only">{statusText(status)}</span>
  </span>
);

/** The kind of an operation or run. All are equally wide, so that the names after them start in one column. */
export const KindBadge = ({ kind }: { readonly kind: 'apply' | 'plan' }) => (
  <span
    className={classNames(
      'inline-flex h-5 w-11 shrink-0 items-center justify-center rounded font-medium text-muted text-xs',
      kind === 'plan' ? 'border border-line-strong border-dashed' : 'bg-raised',
    )}
  >
    {kind}
  </span>
);
