import { describe, expect, it } from 'vitest';
import { configSchema } from './config.ts';
import { changesOf, reloadable, reloaded, sourcesAfter } from './reload.ts';

describe('a configuration that is read again', () => {
  const before = configSchema.parse({});
  const files = { ownCertificate: false };
  it('says what holds at once and what at the next start, by key and without values', () => {
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

  it('says what has changed since it was read last, and what waits for a start as long as it does', () => {
    const second = configSchema.parse({ api_port: 5000, drift: { interval: 60 } });
    const current = reloaded(before, second);
    expect(changesOf(before, current, second, files)).toEqual({ now: [], atStart: ['api_port'] });
    // Back to what it was at the start, which is a change of what is in force.
    expect(changesOf(before, current, before, files)).toEqual({ now: ['drift.interval'], atStart: [] });
  });

  it('does not take a certificate from a file for one of its own making before a start', () => {
    const named = configSchema.parse({ tls_cert: '/a', tls_key: '/b' });
    expect(changesOf(before, before, named, { ownCertificate: true })).toEqual({
      now: [],
      atStart: ['tls_cert', 'tls_key'],
    });
  });

  it('says of what is in force where it comes from', () => {
    expect(
      sourcesAfter({ api_port: 'file', 'drift.interval': 'file' }, { metrics_token: 'file', api_host: 'file' }),
    ).toEqual({ api_port: 'file', metrics_token: 'file' });
  });

  it('puts in force what may be, and nothing else', () => {
    const after = configSchema.parse({ api_port: 5000, drift: { interval: 60, enabled: false } });
    const next = reloaded(before, after);
    expect(next).toEqual({ ...before, drift: { ...before.drift, interval: 60 } });
    expect(before.drift.interval).toBe(3600);
  });

  it('knows only keys that there are', () => {
    for (const key of reloadable) {
      let at: unknown = before;
      for (const part of key.split('.')) {
        expect(Object.keys(at as object), key).toContain(part);
        at = (at as Record<string, unknown>)[part];
      }
    }
  });
});
