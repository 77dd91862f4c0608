import { describe, expect, test } from 'vitest';
import { changesOf, reloadable, reloaded, sourcesAfter } from './reload.ts';
import { configSchema } from './schema.ts';

describe('configuration reload', () => {
  const before = configSchema.parse({});
  const files = { ownCertificate: false };
  test('lists keys that take effect immediately and after a restart, without values', () => {
    const after = configSchema.parse({
      api_port: 5000,
      metrics_token: 'sixteen-letters-or-more',
      drift: { interval: 60, enabled: false },
      database_url: 'postgres://u:p@h/d',
    });
    expect(changesOf(before, before, after, files)).toEqual({
      now: ['drift.interval', 'metrics_token'],
      atStart: ['api_port', 'database_url', 'drift.enabled'],
    });
    const other = configSchema.parse({ database_url: 'postgres://u:q@h/d' });
    const first = configSchema.parse({ database_url: 'postgres://u:p@h/d' });
    expect(changesOf(first, first, other, files).atStart).toEqual(['database_url']);
    expect(changesOf(before, before, configSchema.parse({}), files)).toEqual({ now: [], atStart: [] });
  });

  test('lists changes since the last load, and changes that require a restart', () => {
    const second = configSchema.parse({ api_port: 5000, drift: { interval: 60 } });
    const current = reloaded(before, second);
    expect(changesOf(before, current, second, files)).toEqual({ now: [], atStart: ['api_port'] });
    // This key returns to its value at startup.
    expect(changesOf(before, current, before, files)).toEqual({ now: ['drift.interval'], atStart: [] });
  });

  test('replaces a generated certificate with a configured certificate only at the next restart', () => {
    const named = configSchema.parse({ tls_cert: '/a', tls_key: '/b' });
    expect(changesOf(before, before, named, { ownCertificate: true })).toEqual({
      now: [],
      atStart: ['tls_cert', 'tls_key'],
    });
  });

  test('updates only the sources of reloaded values', () => {
    expect(
      sourcesAfter({ api_port: 'file', 'drift.interval': 'file' }, { metrics_token: 'file', api_host: 'file' }),
    ).toEqual({ api_port: 'file', metrics_token: 'file' });
  });

  test('applies only reloadable keys', () => {
    const after = configSchema.parse({ api_port: 5000, drift: { interval: 60, enabled: false } });
    const next = reloaded(before, after);
    expect(next).toEqual({ ...before, drift: { ...before.drift, interval: 60 } });
    expect(before.drift.interval).toBe(3600);
  });

  test('lists only existing keys as reloadable', () => {
    for (const key of reloadable) {
      let at: unknown = before;
      for (const part of key.split('.')) {
        expect(Object.keys(at as object), key).toContain(part);
        at = (at as Record<string, unknown>)[part];
      }
    }
  });
});
