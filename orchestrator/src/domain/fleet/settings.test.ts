import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describeSettings } from './settings.ts';

const shown = (configuration: Record<string, unknown>) => describeSettings(configuration, {}).settings;

describe('shown settings', () => {
  test('returns the source of each value', () => {
    expect(
      describeSettings(
        { api_port: 1, drift: { interval: 2, enabled: true }, trusted_proxies: ['::1'], tls_cert: null },
        { api_port: 'flag', 'drift.interval': 'file' },
      ),
    ).toEqual({
      settings: { api_port: 1, drift: { interval: 2, enabled: true }, trusted_proxies: ['::1'], tls_cert: null },
      sources: {
        api_port: 'flag',
        'drift.interval': 'file',
        'drift.enabled': 'default',
        trusted_proxies: 'default',
        tls_cert: 'default',
      },
    });
  });

  test('masks only values whose key names a secret', () => {
    expect(
      shown({
        scrape_token: 's',
        metrics: { token: 's', tokens: ['s', 't'] },
        secrets: { key: 's', encryption_key: 's', key_file: '/etc/key', password: '' },
        session_token_expiry_secs: 3600,
        bootstrap_key: 'ab',
        tls_key: '/etc/tls.pem',
      }),
    ).toEqual({
      scrape_token: '••••',
      metrics: { token: '••••', tokens: ['••••', '••••'] },
      secrets: { key: '••••', encryption_key: '••••', key_file: '/etc/key', password: '' },
      session_token_expiry_secs: 3600,
      bootstrap_key: 'ab',
      tls_key: '/etc/tls.pem',
    });
  });

  test('masks passwords in URLs', () => {
    expect(shown({ database_url: 'postgres://muster:hunter2@db.example:5432/muster?sslmode=verify-full' })).toEqual({
      database_url: 'postgres://muster:••••@db.example:5432/muster?sslmode=verify-full',
    });
    expect(shown({ database_url: 'postgresql:///muster?host=/run&user=a&password=hunter2' })).toEqual({
      database_url: 'postgresql:///muster?host=%2Frun&user=a&password=••••',
    });
    const url = { toJSON: () => 'postgres://muster:••••@db.example/muster' };
    expect(shown({ database_url: url })).toEqual({ database_url: 'postgres://muster:••••@db.example/muster' });
    expect(shown({ database_url: 'host=db user=a password=hunter2' })).toEqual({ database_url: '••••' });
    expect(shown({ database_url: 'postgres://a:hunter2@[bad/x' })).toEqual({ database_url: '••••' });
    expect(shown({ database_url: 'postgres://db.example/muster' })).toEqual({
      database_url: 'postgres://db.example/muster',
    });
  });

  test('never shows the password in a database URL, even with special characters', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6 }), (password) => {
        const url = `postgres://muster:${encodeURIComponent(`~${password}~`)}@db.example/muster`;
        expect(shown({ database_url: url }).database_url).toBe('postgres://muster:••••@db.example/muster');
      }),
    );
  });
});
