import { expect, test } from 'vitest';
import { isTerm, termsOf } from './terms.ts';

const page = (...rows: string[]) => `# Glossary\n\n| Term | Meaning |\n|---|---|\n${rows.join('\n')}\n`;

test('reads every spelling of a term', () => {
  const { terms, repeated, misplaced } = termsOf(
    page('| agent | a process |', '| maintenance window, window | a period |'),
  );
  expect([...terms]).toEqual(['agent', 'maintenance window', 'window']);
  expect({ repeated, misplaced }).toEqual({ repeated: [], misplaced: [] });
});

test('reports a term with two definitions, and a term out of order', () => {
  const { repeated, misplaced } = termsOf(page('| run | a plan |', '| agent | a process |', '| run | a resource |'));
  expect(repeated).toEqual(['run']);
  expect(misplaced).toEqual(['agent']);
});

test('recognizes the plural of a term, and a term with dashes', () => {
  const terms = new Set(['enrolment token', 'status']);
  expect(isTerm('enrolment-tokens', terms)).toBe(true);
  expect(isTerm('status', terms)).toBe(true);
  expect(isTerm('tokens', terms)).toBe(false);
});
