import { pointer as pointerText } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { HttpMethod } from '../../host/network/http-get.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Json, Machine, Outcome } from '../provider/provider.ts';
import {
  diffObject,
  diffObjectRemoval,
  formerBody,
  hiddenPointers,
  keysToRestore,
  type ObjectBefore,
  readableBody,
  type SeenObject,
} from './diff.ts';
import { change, type Declared, type Read, readObject } from './exchange.ts';
import { differences, expectExact, type Found, leaves, partOf, valueAt, withValueAt } from './subset.ts';

/** Maximum size of the recorded part of an object as JSON, in characters. */
const maxRemembered = 256 * 1024;
/** Milliseconds between two attempts to read an object. */
const pollMs = 500;
/** Milliseconds within which responses must reflect a change. */
const settleMs = 5_000;
/** Seconds that an apply waits for the server by default. */
const defaultWait = 30;

/**
 * An object behind an HTTP API. Not recheckable, so it is observed after earlier resources are applied: one of them may
 * start the server, or create the object's parent.
 */
export const httpObject = defineProvider<'http-object', SeenObject, ObjectBefore>({
  type: 'http-object',
  fields: {
    url: 'text',
    body: 'any?',
    read_at: 'text?',
    write_only: 'list?',
    method: 'text?',
    write_url: 'text?',
    create_method: 'text?',
    create_url: 'text?',
    delete_method: 'text?',
    headers: 'map?',
    username: 'text?',
    password: 'text?',
    ca_file: 'text?',
    timeout: 'integer?',
    wait: 'integer?',
    ensure: 'text?',
  },
  recheckable: false,
  // The object may be the account that later requests authenticate as.
  bringsToDependents: () => ['servers'],

  check({ body }) {
    const origin = URL.parse(body.url)?.origin;
    if (origin === undefined) throw new HostFailure('`url` must be an http or https URL');
    for (const field of ['write_url', 'create_url'] as const)
      if (body[field] != null && URL.parse(body[field])?.origin !== origin)
        throw new HostFailure(
          `\`${field}\` must have the scheme, host, and port of \`url\`, because they receive the credentials`,
        );
    if (body.ensure === 'absent') return;
    if (body.body == null) throw new HostFailure('`body` is required');
    for (const pointer of hiddenPointers(body))
      if (valueAt(body.body as Found, pointer) === undefined)
        throw new HostFailure(`\`body\` has no key ${pointerText(pointer)}, which \`write_only\` names`);
  },

  async observe(resource, { purpose }, machine) {
    const { body } = resource;
    const read = await (purpose === 'apply' ? readOnceUp(resource, machine) : readObject(resource, machine));
    // The whole object is recorded before it is deleted.
    return seenIn(read, body.ensure === 'absent' ? null : readableBody(body));
  },
  diff: diffObject,

  async remember({ body }, { isPresent, part }, _difference, before) {
    if (before?.was === 'absent') return before;
    if (!isPresent) return before ?? { was: 'absent' };
    const known = before ?? { was: 'present', touched: [], whole: null };
    const now: ObjectBefore =
      body.ensure === 'absent'
        ? { ...known, whole: known.whole ?? restoredInto(known.touched, part) }
        : known.whole !== null
          ? known
          : { ...known, touched: [...known.touched, ...newlyTouched(body, part, known.touched)] };
    if (JSON.stringify(now).length > maxRemembered)
      throw new HostFailure(
        `the original values are larger than ${maxRemembered / 1024} KiB, so the agent cannot keep them to restore them on removal`,
      );
    return now;
  },

  async apply(resource, { isPresent }, _difference, machine) {
    const { body } = resource;
    if (body.ensure === 'absent') return deleted(resource, machine);
    return written(resource, body.body as Json, isPresent, readableBody(body), machine);
  },

  observeForRemoval: async (resource, before, machine) =>
    seenIn(await readObject(resource, machine), keysToRestore(resource.body, before)),
  diffRemoval: diffObjectRemoval,

  async remove(resource, before, { isPresent, part }, _difference, machine) {
    if (before.was === 'absent') return deleted(resource, machine);
    const former = formerBody(resource.body, before, part);
    // An API may replace the whole object, so the secrets are sent again.
    const sent = hiddenPointers(resource.body).reduce<Json>((value, pointer) => {
      const secret = valueAt(resource.body.body as Found, pointer);
      return before.whole === null && secret !== undefined ? withValueAt(value, pointer, secret) : value;
    }, former);
    // The server sets some keys of a whole object itself, such as the time of the last change. PATCH removes null keys.
    const isPartial = before.whole === null && resource.body.method !== 'PATCH';
    return written(resource, sent, isPresent, isPartial || typeof former === 'string' ? former : {}, machine);
  },
});

/** @param keys a value that contains the keys to observe; null for all keys */
function seenIn(read: Read, keys: Json): SeenObject {
  if (read.missing !== null) return { missing: read.missing, isPresent: false, part: null };
  const { object } = read;
  if (object === undefined) return { missing: null, isPresent: false, part: null };
  const part = keys === null ? object : partOf(keys, object);
  expectExact(part);
  return { missing: null, isPresent: true, part: part ?? null };
}

/** Reads the object, and waits until the server answers. */
async function readOnceUp(resource: Declared, machine: Machine): Promise<Read> {
  const { clock } = machine;
  const seconds = resource.body.wait ?? defaultWait;
  const deadline = clock.monotonic() + seconds * 1000;
  for (;;) {
    const read = await readObject(resource, machine);
    if (read.missing?.mayBeStarting !== true || machine.cancelled()) return read;
    if (clock.monotonic() + pollMs >= deadline)
      return { missing: { ...read.missing, message: `${read.missing.message}, for ${seconds} s` } };
    await pause(machine);
  }
}

async function pause({ clock, stop }: Machine): Promise<void> {
  await new Promise<void>((resolve) => clock.after(pollMs, resolve));
  stop.throwIfAborted();
}

type Touched = Extract<ObjectBefore, { was: 'present' }>['touched'];

/** Returns the values of the declared keys that no earlier change recorded. */
function newlyTouched(body: Declared['body'], part: Json, known: Touched): Touched {
  const names = new Set(known.map(({ pointer }) => pointerText(pointer)));
  return leaves(readableBody(body), part)
    .filter(({ pointer }) => !names.has(pointerText(pointer)))
    .map(({ pointer, found }) => ({ pointer: [...pointer], existed: found !== undefined, value: found ?? null }));
}

/** Returns the object as it was before the agent changed some of its keys. */
const restoredInto = (touched: Touched, object: Json): Json =>
  touched.reduceRight<Json>(
    (value, { pointer, existed, value: former }) => withValueAt(value, pointer, existed ? former : undefined),
    object,
  );

async function deleted(resource: Declared, machine: Machine): Promise<Outcome> {
  const { url, delete_method } = resource.body;
  const method: HttpMethod = delete_method ?? 'DELETE';
  const refused = await change(method, url, null, resource, machine);
  if (refused !== null) return refused;
  return settled(resource, machine, (read) =>
    read.missing === null && read.object === undefined
      ? null
      : `the server accepted ${method}, but the object still exists`,
  );
}

/** @param expected the keys and values that the object must have afterwards */
async function written(
  resource: Declared,
  sent: Json,
  isPresent: boolean,
  expected: Json,
  machine: Machine,
): Promise<Outcome> {
  const { url, method = 'PUT', write_url, create_method, create_url } = resource.body;
  const [how, where] = isPresent
    ? [method ?? 'PUT', write_url ?? url]
    : [create_method ?? method ?? 'PUT', create_url ?? write_url ?? url];
  const refused = await change(how, where, sent, resource, machine);
  if (refused !== null) return refused;
  return settled(resource, machine, (read) => {
    if (read.missing !== null) return `the server accepted ${how}, but then: ${read.missing.message}`;
    if (read.object === undefined) return `the server accepted ${how}, but the object does not exist at \`url\``;
    const differing = differences(expected, read.object).map(({ pointer }) => pointerText(pointer) || 'the text');
    if (differing.length === 0) return null;
    const named = differing.slice(0, 5).join(', ');
    return `the server accepted ${how}, but answers other values for ${named}; declare the values as the API returns them, or list keys that it does not return in \`write_only\``;
  });
}

/**
 * Reads the object until the change is visible. Fails if the change does not become visible within the time limit,
 * because each apply would then change the object again.
 */
async function settled(
  resource: Declared,
  machine: Machine,
  problemIn: (read: Read) => string | null,
): Promise<Outcome> {
  const deadline = machine.clock.monotonic() + settleMs;
  for (;;) {
    const problem = problemIn(await readObject(resource, machine));
    if (problem === null) return {};
    if (machine.clock.monotonic() + pollMs >= deadline || machine.cancelled()) return { failure: problem };
    await pause(machine);
  }
}
