import { expect, test } from 'vitest';
import { eventTone } from './event-tones.ts';

test('gives failures and lost agents the tone of a failure, pending agents that of a warning, and others that of their severity', () => {
  const tone = (event_type: string, severity: 'info' | 'warning' | 'critical') => eventTone({ event_type, severity });
  expect(tone('state.failed', 'warning')).toBe('bad');
  expect(tone('agent.lost', 'warning')).toBe('bad');
  expect(tone('drift.detected', 'warning')).toBe('warn');
  expect(tone('agent.cloned', 'critical')).toBe('bad');
  expect(tone('agent.pending', 'info')).toBe('warn');
  expect(tone('state.applied', 'info')).toBe('neutral');
});
