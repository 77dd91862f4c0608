import { expect, test } from 'vitest';
import { settingsOf } from './settings-rows.ts';

test('flattens nested settings into rows with keys and sources', () => {
  const settings = {
    drift: { enabled: true, interval: 600 },
    api_port: 4748,
    trusted_proxies: ['10.0.0.0/8'],
    tls: {},
    public_url: null,
  };
  const sources = { 'drift.interval': 'file', api_port: 'flag' } as const;
  expect(settingsOf({ settings, sources })).toEqual([
    { key: 'api_port', value: '4748', amount: null, source: 'flag' },
    { key: 'drift.enabled', value: 'true', amount: null, source: 'default' },
    { key: 'drift.interval', value: '600', amount: '10 min', source: 'file' },
    { key: 'public_url', value: null, amount: null, source: 'default' },
    { key: 'tls', value: '{}', amount: null, source: 'default' },
    { key: 'trusted_proxies', value: '["10.0.0.0/8"]', amount: null, source: 'default' },
  ]);
});
