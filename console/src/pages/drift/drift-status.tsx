import { type DriftRecord, driftStatuses } from '@muster/protocol/http';
import { Dot, type StateTone } from '../../parts/badge.tsx';
import { findingTones, syncTones } from '../reconcile/sync-tones.ts';

type ShownStatus = DriftRecord['status'] | 'accepted';

const looks: Record<ShownStatus, { readonly tone: StateTone; readonly word: string }> = {
  in_sync: { tone: syncTones.in_sync, word: 'in sync' },
  drifted: { tone: findingTones.drifted, word: 'drifted' },
  accepted: { tone: syncTones.accepted, word: 'accepted' },
  failed: { tone: findingTones.drift_failed, word: 'check failed' },
  cancelled: { tone: 'warn', word: 'canceled' },
};

/** Statuses of checks as choices of a filter. */
export const statusOptions = driftStatuses.map((value) => ({ value, label: looks[value].word }));

const shownStatus = ({ status, accepted }: Pick<DriftRecord, 'status' | 'accepted'>): ShownStatus =>
  status === 'drifted' && accepted !== null ? 'accepted' : status;

export function DriftStatus({ record }: { readonly record: Pick<DriftRecord, 'status' | 'accepted'> }) {
  const { tone, word } = looks[shownStatus(record)];
  return <Dot tone={tone}>{word}</Dot>;
}

export const triggerWords: Record<DriftRecord['trigger'], string> = {
  operator: 'operator',
  schedule: 'schedule',
  watch: 'change detected',
  audit: 'audit assignment',
};
