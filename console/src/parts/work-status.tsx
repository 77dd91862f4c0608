import type { OperationStatus } from '@muster/protocol';
import type { Run } from '@muster/protocol/http';
import { statusText } from '../../../client/src/status-text.ts';
import { Badge, Dot, StateBadge, type Tone } from './badge.tsx';

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

/** The kind of an operation or run. An apply is highlighted, because it changes machines. */
export function KindBadge({ kind }: { readonly kind: 'apply' | 'plan' }) {
  return <Badge tone={kind === 'apply' ? 'info' : 'neutral'}>{kind}</Badge>;
}
