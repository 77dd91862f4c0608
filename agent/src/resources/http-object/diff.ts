import type { FieldChange } from '@muster/protocol';
import { pointer as pointerText } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  type Circumstances,
  type Difference,
  type Json,
  nothing,
  presenceDrift,
  withChanges,
} from '../provider/provider.ts';
import { shown } from '../text-edit/text-file.ts';
import type { Declared, NoAnswer } from './exchange.ts';
import { differences, type Found, isSame, pointerOf, valueAt, withValueAt } from './subset.ts';

type Body = Declared['body'];

export interface SeenObject {
  missing: NoAnswer | null;
  isPresent: boolean;
  /** The part of the object that contains the keys to compare and to restore; null if the object has none of them. */
  part: Json;
}

/** A declared key before the agent first changed it. */
type Touched = { pointer: string[]; existed: boolean; value: Json };

/** The object before the agent first changed it. */
export type ObjectBefore =
  | { was: 'absent' }
  | {
      was: 'present';
      /** The declared keys, in the order in which they were first declared. */
      touched: Touched[];
      /** The whole object, if the agent deleted it; otherwise null. */
      whole: Json;
    };

/** Returns JSON pointers to the declared keys that the API does not return. */
export const hiddenPointers = ({ write_only }: Body): (readonly string[])[] => (write_only ?? []).map(pointerOf);

/** Returns the declared keys that the API returns. */
export const readableBody = (body: Body): Json =>
  hiddenPointers(body).reduce<Json>((value, pointer) => withValueAt(value, pointer, undefined), body.body as Json);

/** Returns the declared keys that must be sent although they cannot be compared. */
function hiddenChanges(body: Body, succeeded: Circumstances['succeeded']): string[] {
  const former = succeeded?.type === 'http-object' ? (succeeded as Declared).body : null;
  const isSent = former !== null && former.ensure !== 'absent';
  return hiddenPointers(body)
    .filter((pointer) => {
      const declared = valueAt(body.body as Found, pointer);
      return !isSent || !isSame(declared, valueAt(former.body as Found, pointer));
    })
    .map(pointerText);
}

/** Returns a value for display; null if there is none. */
const text = (value: Found): string | null =>
  value === undefined ? null : shown(typeof value === 'string' ? value : JSON.stringify(value));

/** Returns the change to the keys that differ; null if there are none. */
function bodyChange(declared: Json, found: Found): FieldChange | null {
  const all = differences(declared, found);
  if (all.length === 0) return null;
  const put = (which: 'found' | 'declared') => {
    const given = all.filter((each) => each[which] !== undefined);
    if (given.length === 0) return undefined;
    return given.reduce<Json>((value, each) => withValueAt(value, each.pointer, each[which]), {});
  };
  return { field: 'body', from: text(put('found')), to: text(put('declared')) };
}

export function diffObject(
  { body }: Declared,
  { missing, isPresent, part }: SeenObject,
  { purpose, succeeded }: Pick<Circumstances, 'purpose' | 'succeeded'>,
): Difference {
  if (missing !== null && purpose === 'drift') throw new HostFailure(missing.message);
  const awaits = missing === null ? {} : { awaits: [{ kind: 'servers' as const, message: missing.message }] };
  if (body.ensure === 'absent') return isPresent || missing !== null ? { ...presenceDrift(), ...awaits } : nothing();
  if (!isPresent)
    return withChanges(
      'create',
      [
        { field: 'ensure', from: 'absent', to: 'present' },
        { field: 'body', from: null, to: text(readableBody(body)) },
      ],
      awaits,
    );
  const change = bodyChange(readableBody(body), part);
  const hidden = hiddenChanges(body, succeeded);
  const changes = [
    ...(change === null ? [] : [change]),
    ...(hidden.length === 0 ? [] : [{ field: 'write_only', from: null, to: shown(hidden.join(', ')) }]),
  ];
  return withChanges('update', changes);
}

/**
 * Returns the original values of the keys. Omits a key that did not exist; for PATCH, sets it to null, which removes it
 * (RFC 7396).
 */
export function formerBody(body: Body, before: Extract<ObjectBefore, { was: 'present' }>, part: Json): Json {
  if (before.whole !== null) return before.whole;
  // Keys that were declared first are restored last, because later records may contain the agent's values.
  return before.touched.reduceRight<Json>(
    (value, { pointer, existed, value: former }) =>
      withValueAt(value, pointer, existed ? former : body.method === 'PATCH' ? null : undefined),
    part,
  );
}

/** Returns a value that contains the keys to read for a removal. */
export const keysToRestore = (body: Body, before: ObjectBefore): Json =>
  before.was === 'absent'
    ? {}
    : (before.whole ??
      before.touched.reduce<Json>(
        (value, { pointer }) => (valueAt(value, pointer) === undefined ? withValueAt(value, pointer, true) : value),
        body.body == null ? {} : readableBody(body),
      ));

export function diffObjectRemoval(
  { body }: Declared,
  before: ObjectBefore,
  { missing, isPresent, part }: SeenObject,
): Difference {
  if (missing !== null) throw new HostFailure(missing.message);
  if (before.was === 'absent') return isPresent ? presenceDrift() : nothing('already removed');
  if (!isPresent && before.whole === null)
    return nothing('already removed, but not by the agent, so the agent does not create it again');
  const hidden = hiddenPointers(body).map(pointerText).join(', ');
  const lost = hidden === '' ? '' : `keeps the value of ${hidden}, because the server does not return the original one`;
  const change = isPresent ? restoration(formerBody(body, before, part), before, part) : null;
  if (isPresent && change === null) return nothing(['already in its original state', lost].filter(Boolean).join('; '));
  return {
    action: 'remove',
    changes: [change ?? { field: 'ensure', from: 'absent', to: 'present' }],
    diff: null,
    message: ['restores the original state', lost].filter(Boolean).join('; '),
  };
}

/** Returns the change that restores an object; null if all its keys have their original values. */
function restoration(
  former: Json,
  { touched, whole }: Extract<ObjectBefore, { was: 'present' }>,
  part: Json,
): FieldChange | null {
  if (whole !== null) return bodyChange(whole, part);
  const isRestored = touched.every(({ pointer, existed }) =>
    isSame(valueAt(part, pointer), existed ? valueAt(former, pointer) : undefined),
  );
  return isRestored ? null : { field: 'body', from: text(part), to: text(former) };
}
