import { defaultCpuMs, type FuzzTarget } from './target.ts';

const example = { body: JSON.stringify({ type: 'a', name: 'web', items: [1, 2], inner: { text: 'a' } }) };
const planted = (run: (text: string, bytes: Uint8Array) => unknown): FuzzTarget => ({
  ...{ examples: [example], maxBytes: 1024 * 1024, cpuMs: defaultCpuMs },
  run: (bytes) => void run(Buffer.from(bytes).toString(), bytes),
});

/** Parses JSON. @returns null for invalid JSON, which is not a bug */
function read(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

function anywhere(value: unknown, is: (value: unknown) => boolean): boolean {
  const open = [value];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (is(at)) return true;
    if (isObject(at)) open.push(...Object.values(at).slice(0, 1_000));
  }
  return false;
}

const fail = (what: string) => {
  throw new TypeError(what);
};

/** Targets with one planted bug each, and the target `none` without a bug. */
export const targets: Readonly<Record<string, FuzzTarget>> = {
  none: planted(read),
  prototype: planted(
    (text) => anywhere(read(text), (value) => isObject(value) && Object.hasOwn(value, '__proto__')) && fail('key'),
  ),
  surrogate: planted(
    (text) => anywhere(read(text), (value) => typeof value === 'string' && !value.isWellFormed()) && fail('surrogate'),
  ),
  infinity: planted((text) => anywhere(read(text), (value) => value === Number.POSITIVE_INFINITY) && fail('number')),
  bidi: planted(
    (text) => anywhere(read(text), (value) => typeof value === 'string' && value.includes('\u202e')) && fail('bidi'),
  ),
  'control-c1': planted(
    (text) =>
      anywhere(read(text), (value) => typeof value === 'string' && /[\x80-\x9f]/.test(value)) && fail('control'),
  ),
  utf8: planted((_, bytes) => new TextDecoder('utf-8', { fatal: true }).decode(bytes)),
  'duplicate-key': planted((text) => {
    if (read(text) !== null && text.split('"name":').length > 2) fail('twice');
  }),
  nesting: planted((text) => {
    const deep = (value: unknown): number =>
      isObject(value) ? 1 + Math.max(0, ...Object.values(value).slice(0, 10).map(deep)) : 0;
    deep(read(text));
  }),
  'many-keys': planted(
    (text) => anywhere(read(text), (value) => isObject(value) && Object.keys(value).length > 4_000) && fail('keys'),
  ),
  'long-text': planted(
    (text) => anywhere(read(text), (value) => typeof value === 'string' && value.length > 60_000) && fail('text'),
  ),
  'slow-pattern': planted((text) =>
    anywhere(read(text), (value) => typeof value === 'string' && /^(a+)+$/.test(value.slice(0, 41))),
  ),
  quadratic: planted((text) =>
    anywhere(read(text), (value) => {
      if (!Array.isArray(value)) return false;
      return (
        value.reduce(
          (twice: number, item, at) => twice + (value.indexOf(item, at + 1) === -1 ? 0 : 1) + count(value),
          0,
        ) < 0
      );
    }),
  ),
  allocation: {
    ...planted((text) =>
      anywhere(
        read(text),
        (value) => Array.isArray(value) && Buffer.alloc(Math.min(value.length * 100_000, 2e8)).length < 0,
      ),
    ),
    // Effectively unlimited. This target tests only the memory bound.
    cpuMs: 60_000,
  },
  endless: planted((text) => {
    if (anywhere(read(text), (value) => value === '__proto__')) for (;;);
  }),
};

const count = (list: readonly unknown[]): number =>
  list.reduce((sum: number, item) => sum + (item === null ? 1 : 0), 0);
