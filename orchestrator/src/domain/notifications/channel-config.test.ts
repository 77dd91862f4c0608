import { MusterError } from '@muster/protocol';
import { type ChannelTarget, type ChannelType, maskedSecret } from '@muster/protocol/http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readConfig, showConfig } from './channel-config.ts';

const open = { denyPrivate: false };
const faultsOf = (type: ChannelType, given: unknown, stored: ChannelTarget | null = null, rule = open) => {
  try {
    readConfig(type, given, stored, rule);
    return [];
  } catch (error) {
    if (!(error instanceof MusterError)) throw error;
    expect(error.code).toBe('invalid_input');
    return (error.errors ?? []).map(({ path }) => path);
  }
};
const shown = (type: ChannelType, config: unknown) => showConfig(readConfig(type, config, null, open));

describe('showConfig', () => {
  test.each<[ChannelType, Record<string, string>, Record<string, string>]>([
    ['webhook', { url: 'https://h.example/x', secret: 's3' }, { url: 'https://h.example/x', secret: maskedSecret }],
    ['webhook', { url: 'https://h.example' }, { url: 'https://h.example' }],
    [
      'webhook',
      { url: 'https://a:b@h.example/x?key=1' },
      { url: `https://${maskedSecret}@h.example/x?${maskedSecret}` },
    ],
    [
      'discord',
      { webhook_url: 'https://discord.com/api/webhooks/1/abc' },
      { webhook_url: `https://discord.com/${maskedSecret}` },
    ],
    [
      'slack',
      { webhook_url: 'https://hooks.slack.com/services/T/B/x?y=z' },
      { webhook_url: `https://hooks.slack.com/${maskedSecret}` },
    ],
    ['slack', { webhook_url: 'https://u:p@chat.example/x' }, { webhook_url: `https://chat.example/${maskedSecret}` }],
    ['ntfy', { topic: 'fleet' }, { topic: 'fleet' }],
    [
      'ntfy',
      { url: 'http://n.example', topic: 'fleet', token: 'tk_1' },
      { url: 'http://n.example', topic: 'fleet', token: maskedSecret },
    ],
  ])('masks the secrets in a %s: %o', (type, config, expected) => expect(shown(type, config)).toEqual(expected));

  test('never includes a secret in the displayed config', () => {
    const secret = fc.stringMatching(/^[a-z0-9]{12,30}$/);
    fc.assert(
      fc.property(secret, (text) => {
        const all = [
          shown('webhook', { url: `https://u:${text}@h.example/x?a=${text}#${text}`, secret: text }),
          shown('discord', { webhook_url: `https://u${text}:${text}@d.example/api/${text}?a=${text}#${text}` }),
          shown('slack', { webhook_url: `http://d.example:1/${text}` }),
          shown('ntfy', { topic: 'fleet', token: text, url: `https://${text}@h.example/?${text}` }),
        ];
        expect(JSON.stringify(all)).not.toContain(text);
      }),
    );
  });
});

describe('masked fields', () => {
  const stored = readConfig('webhook', { url: 'https://a:b@h.example/x', secret: 's3' }, null, open);
  test('keeps the stored value for a field that is sent masked', () => {
    expect(readConfig('webhook', showConfig(stored), stored, open)).toEqual(stored);
    expect(readConfig('webhook', { url: 'https://other.example/', secret: maskedSecret }, stored, open).config).toEqual(
      {
        url: 'https://other.example/',
        secret: 's3',
      },
    );
  });
  test('refuses to send a masked token to another server', () => {
    const home = readConfig('ntfy', { url: 'https://ntfy.example/a', topic: 't', token: 'tk' }, null, open);
    const atPublic = readConfig('ntfy', { topic: 't', token: 'tk' }, null, open);
    const token = maskedSecret;
    expect(readConfig('ntfy', { url: 'https://ntfy.example/b', topic: 'u', token }, home, open).config).toMatchObject({
      token: 'tk',
    });
    expect(readConfig('ntfy', { topic: 'u', token }, atPublic, open).config).toMatchObject({ token: 'tk' });
    for (const url of ['https://evil.example/', 'http://ntfy.example/a', 'https://ntfy.example:8443/a', undefined])
      expect(faultsOf('ntfy', { url, topic: 't', token }, home)).toEqual(['/config/token']);
    expect(faultsOf('ntfy', { url: 'https://evil.example/', topic: 't', token }, atPublic)).toEqual(['/config/token']);
    expect(faultsOf('ntfy', { url: 'https://evil.example/', topic: 't', token: 'new' }, home)).toEqual([]);
  });
  test('removes a field that is absent from the update', () => {
    expect(readConfig('webhook', { url: 'https://h.example/', secret: null }, stored, open).config).toEqual({
      url: 'https://h.example/',
    });
  });
  test('refuses a masked field without a stored value', () => {
    expect(faultsOf('webhook', { url: 'https://h.example/', secret: maskedSecret })).toEqual(['/config/secret']);
    expect(faultsOf('webhook', { url: `https://${maskedSecret}@evil.example/x` }, stored)).toEqual(['/config/url']);
    expect(faultsOf('discord', { webhook_url: `https://discord.com/${maskedSecret}` })).toEqual([
      '/config/webhook_url',
    ]);
  });
});

describe('readConfig', () => {
  test.each<[ChannelType, unknown, string[]]>([
    ['webhook', {}, ['/config/url']],
    ['webhook', { url: 'https://h.example/', color: 'red' }, ['/config/color']],
    ['webhook', { url: 'https://h.example/', secret: '' }, ['/config/secret']],
    ['webhook', { url: 'ftp://h.example/' }, ['/config/url']],
    ['webhook', { url: 'file:///etc/passwd' }, ['/config/url']],
    ['webhook', { url: 'javascript:alert(1)' }, ['/config/url']],
    ['webhook', { url: 'https://' }, ['/config/url']],
    ['webhook', { url: 'https://h.example/\nx' }, ['/config/url']],
    ['webhook', { url: 'https://h.example/ x' }, ['/config/url']],
    ['webhook', { url: 'https://%zz@h.example/' }, ['/config/url']],
    ['webhook', { url: 'http://169.254.169.254/latest' }, ['/config/url']],
    ['webhook', { url: 'http://2852039166/' }, ['/config/url']],
    ['webhook', { url: 'http://[::ffff:a9fe:a9fe]/' }, ['/config/url']],
    ['webhook', { url: 'http://0.0.0.0/' }, ['/config/url']],
    ['discord', { url: 'https://h.example/' }, ['/config/webhook_url', '/config/url']],
    ['slack', { webhook_url: 7 }, ['/config/webhook_url']],
    ['ntfy', { topic: 'a/b' }, ['/config/topic']],
    ['ntfy', { topic: 'a', token: 'x\r\nhost: y' }, ['/config/token']],
    ['ntfy', 'x', ['/config']],
  ])('refuses the config of a %s: %o', (type, config, paths) => expect(faultsOf(type, config)).toEqual(paths));

  test('refuses private addresses only if they are denied', () => {
    for (const url of ['http://127.0.0.1/', 'http://192.168.0.9/', 'http://[::1]/', 'http://[fd12::1]/']) {
      expect(faultsOf('webhook', { url })).toEqual([]);
      expect(faultsOf('webhook', { url }, null, { denyPrivate: true })).toEqual(['/config/url']);
    }
  });
});
