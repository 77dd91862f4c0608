import { describe, expect, it } from 'vitest';
import { configSchema } from './config.ts';
import { changesOf, reloadable, reloaded } from './reload.ts';

describe('a configuration that is read again', () => {
  const before = configSchema.parse({});
  it('says what holds at once and what at the next start, by key and without values', () => {
    const after = configSchema.parse({
      api_port: 5000,
      metrics_token: 'sixteen-letters-or-more',
      drift: { interval: 60, enabled: false },
      database_url: 'postgres://u:p@h/d',
    });
    expect(changesOf(before, after)).toEqual({
      now: ['drift.interval', 'metrics_token'],
      atStart: ['api_port', 'database_url', 'drift.enabled'],
    });
    const other = configSchema.parse({ database_url: 'postgres://u:q@h/d' });
    expect(changesOf(configSchema.parse({ database_url: 'postgres://u:p@h/d' }), other).atStart).toEqual([
      'database_url',
    ]);
    expect(changesOf(before, configSchema.parse({}))).toEqual({ now: [], atStart: [] });
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
