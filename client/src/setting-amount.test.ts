import { expect, test } from 'vitest';
import { settingAmount } from './setting-amount.ts';

test.each([
  ['agents.daily_bytes', 268_435_456, '256 MiB'],
  ['agents.lost_after_secs', 120, '2 min'],
  ['drift.interval', 5_400, '90 min'],
  ['metrics.poll_interval', 45, '45 s'],
  ['database_statement_timeout', 30, '30 s'],
  ['agents.offline_after_secs', 45, null],
  ['metrics.retention', 86_400, '1 d'],
  ['api.console_idle_secs', 43_200, '12 h'],
  ['audit.retention_days', 60, null],
  ['api_port', 4_800, null],
  ['public_url', null, null],
])('shows the value of %s, %s, as %s', (key, value, amount) => {
  expect(settingAmount(key, value)).toBe(amount);
});
