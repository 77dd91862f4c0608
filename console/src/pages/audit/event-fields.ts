import type { AuditEvent } from '@muster/protocol/http';
import { bytesText } from '../../../../client/src/byte-text.ts';
import { absoluteTime, withLocalTimes } from '../../parts/time.tsx';

/** The fields of an event's metadata, in words. */

export interface EventField {
  readonly key: string;
  readonly label: string;
  readonly text: string;
}

/** Labels of fields whose key is not its label. */
const labels: Readonly<Record<string, string>> = {
  backup_created_at: 'Backup created',
  connected_from: 'Connected from',
  duration_secs: 'Duration',
  enrolment_token_id: 'Enrollment token',
  enrolment_tokens: 'Enrollment tokens',
  expires_at: 'Expires',
  ip: 'IP address',
  former_ip: 'Former IP address',
  free_bytes: 'Free space',
  reserve_bytes: 'Reserved space',
  seconds: 'Duration',
  sha256: 'SHA-256',
  size_bytes: 'Size of the disk',
  ttl: 'Waits up to',
};

/** Words for codes, by field. */
const words: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  pin_source: {
    ...{ flag: 'given at enrollment', pinned: 'pinned earlier', discovery: 'from discovery' },
    first_use: 'trusted on first use',
  },
};

/** Returns a key as a label, such as `Operation` for `operation_id` and `Agent version` for `agent_version`. */
function labelOf(key: string): string {
  const text = labels[key] ?? key.replace(/_(id|at)$/, '').replaceAll('_', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function textOf(key: string, value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') {
    if (/_(at|until)$/.test(key)) return absoluteTime(value * 1000);
    if (/^bytes$|_bytes$/.test(key)) return bytesText(value);
    return /_secs$|^seconds$|^ttl$/.test(key) ? `${value} s` : String(value);
  }
  if (typeof value === 'string') return words[key]?.[value] ?? withLocalTimes(value);
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  const entries = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  // A flat object, such as the counts in an operation's summary.
  if (entries.length > 0 && entries.every(([, each]) => ['string', 'number', 'boolean'].includes(typeof each)))
    return entries.map(([name, each]) => `${name.replaceAll('_', ' ')} ${each}`).join(', ');
  return JSON.stringify(value);
}

const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** Reports whether a sentence contains a text as whole words. */
const states = (sentence: string, text: string): boolean => {
  const at = sentence.indexOf(text);
  const isPart = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}]/u.test(character);
  return at >= 0 && !isPart(sentence[at - 1]) && !isPart(sentence[at + text.length]);
};

/**
 * Returns the fields that tell more than the event's sentence, actor, and target.
 * @param sentence the sentence that the page shows for the event
 */
export function fieldsOf({ metadata, actor, target }: AuditEvent, sentence: string): EventField[] {
  const known = new Set([actor.id, actor.name, target.id, target.name]);
  return Object.entries(metadata).flatMap(([key, value]) => {
    if (isEmpty(value)) return [];
    const text = textOf(key, value);
    const isTold = typeof value !== 'boolean' && (known.has(text) || states(sentence, text));
    return isTold ? [] : [{ key, label: labelOf(key), text }];
  });
}
