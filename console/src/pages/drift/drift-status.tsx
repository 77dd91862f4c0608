import type { DriftRecord } from '@muster/protocol/http';
import { Dot, type Tone } from '../../parts/badge.tsx';

type ShownStatus = DriftRecord['status'] | 'accepted';

const looks: Record<ShownStatus, { readonly tone: Tone; readonly word: string }> = {
  in_sync: { tone: 'good', word: 'in sync' },
  drifted: { tone: 'warn', word: 'drifted' },
  accepted: { tone: 'neutral', word: 'accepted' },
  failed: { tone: 'bad', word: 'check failed' },
  cancelled: { tone: 'neutral', word: 'cancelled' },
};

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
