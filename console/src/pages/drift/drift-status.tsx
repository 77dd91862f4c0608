import type { DriftRecord } from '@muster/protocol/http';
import { Dot, type Tone } from '../../parts/badge.tsx';

type Shown = DriftRecord['status'] | 'accepted';

const looks: Record<Shown, { readonly tone: Tone; readonly word: string }> = {
  in_sync: { tone: 'good', word: 'in sync' },
  drifted: { tone: 'warn', word: 'drifted' },
  accepted: { tone: 'neutral', word: 'accepted' },
  failed: { tone: 'bad', word: 'check failed' },
  cancelled: { tone: 'neutral', word: 'cancelled' },
};

const shownStatus = ({ status, accepted }: Pick<DriftRecord, 'status' | 'accepted'>): Shown =>
  status === 'drifted' && accepted !== null ? 'accepted' : status;

export function DriftStatus({ record }: { readonly record: Pick<DriftRecord, 'status' | 'accepted'> }) {
  const { tone, word } = looks[shownStatus(record)];
  return <Dot tone={tone}>{word}</Dot>;
}

export const triggerWords: Record<DriftRecord['trigger'], string> = {
  operator: 'asked for',
  schedule: 'on schedule',
  watch: 'a change was seen',
  audit: 'of an audit assignment',
};
