import { expect, test } from 'vitest';
import { eventSentence } from './event-sentence.ts';

const party = (name: string) => ({ id: '01KAGZ9R3E5F6G7H8J9K0M1N2P', name });

test.each([
  ['plan on web-1 requested', 'Plan on web-1 requested'],
  ['sign-in refused: unknown key', 'Sign-in refused: unknown key'],
  ["the orchestrator's disk is nearly full", "The orchestrator's disk is nearly full"],
  ['3 more agents wait for approval', '3 more agents wait for approval'],
  ['Agent web-1 is offline', 'Agent web-1 is offline'],
  ['web-1.example.com connected', 'web-1.example.com connected'],
  ['ada signed in', 'ada signed in'],
  ['', ''],
])('capitalizes the first word of an event: %j', (summary, shown) => expect(eventSentence({ summary })).toBe(shown));

test('keeps the spelling of a name', () => {
  expect(eventSentence({ summary: 'plan signed in', actor: party('plan') })).toBe('plan signed in');
  expect(eventSentence({ summary: 'the connected', actor: party('system'), target: party('the') })).toBe(
    'the connected',
  );
});
