import { describe, expect, test } from 'vitest';
import { parseArguments, UsageError } from './arguments.ts';

const key = 'AB'.repeat(32);

describe('the command line', () => {
  test('uses the defaults if no options are given', () => {
    expect(parseArguments([])).toEqual({
      dataDir: '/var/lib/muster-agent',
      configPath: null,
      factsDir: null,
      hostname: null,
      logFormat: 'text',
      logLevel: 'info',
      connect: null,
    });
  });

  test('accepts an address with its key and token, and options in any order', () => {
    const order = [
      '--data-dir',
      'd',
      'connect',
      'h.example:4747',
      '--orchestrator-key',
      key,
      '--token',
      't',
      '--hostname',
      'web',
    ];
    expect(parseArguments(order)).toMatchObject({
      dataDir: 'd',
      hostname: 'web',
      connect: { host: 'h.example', port: 4747, orchestratorKey: key.toLowerCase(), token: 't' },
    });
    expect(parseArguments(['connect', '[2001:db8::1]:1'])).toMatchObject({ connect: { host: '2001:db8::1', port: 1 } });
  });

  test('accepts --save with an address', () => {
    expect(parseArguments(['connect', 'h:1', '--token', '-', '--save'])).toMatchObject({
      connect: { host: 'h', port: 1, token: '-' },
      save: true,
    });
  });

  test('accepts rotate-key with a grace period for the previous key', () => {
    const parse = (...more: string[]) => parseArguments(['rotate-key', ...more]);
    expect(parse()).toMatchObject({ connect: null, rotateKey: { graceSecs: 86_400, json: false } });
    expect(parse('--at-once', '--json')).toMatchObject({ rotateKey: { graceSecs: 0, json: true } });
    for (const [time, graceSecs] of [
      ['90m', 5400],
      ['30d', 2_592_000],
      ['0s', 0],
    ])
      expect(parse('--former-good-for', String(time))).toMatchObject({ rotateKey: { graceSecs } });
  });

  test('accepts the help and version options in any position', () => {
    expect(parseArguments(['connect', '-h'])).toBe('help');
    expect(parseArguments(['--version'])).toBe('version');
  });

  const faults: [string[], string][] = [
    [['--confg', 'x'], "Unknown option '--confg'"],
    [['--config'], "Option '--config <value>' argument missing"],
    [['conect', 'h:1'], 'did you mean "connect HOST:PORT"?'],
    [['connect'], 'connect requires an address'],
    [['rotate-key', 'now'], 'unexpected argument "now"'],
    [['rotate-key', '--save'], 'rotate-key cannot be combined'],
    [['rotate-key', '--token', 't'], 'rotate-key cannot be combined'],
    [['rotate-key', '--at-once', '--former-good-for', '1h'], '--at-once cannot be combined with --former-good-for'],
    [['rotate-key', '--former-good-for', '31d'], 'at most 30d'],
    [['rotate-key', '--former-good-for', '24'], 'a time such as 90m, 24h, or 7d'],
    [['connect', 'h:1', '--at-once'], '--at-once requires rotate-key'],
    [['--json'], '--json requires rotate-key'],
    [['connect', 'h'], '"h" is not HOST:PORT'],
    [['connect', 'h:0'], '"h:0" is not HOST:PORT'],
    [['connect', 'h:65536'], 'is not HOST:PORT'],
    [['connect', '2001:db8::1:4747'], 'is not HOST:PORT'],
    [['connect', 'h:1', 'more'], 'unexpected argument "more"'],
    [['connect', 'h:1', '--orchestrator-key', 'ab'], '64 hexadecimal digits'],
    [['--token', 't'], 'require an address'],
    [['--save'], '--save requires an address'],
    [['--log-format', 'xml'], 'json or text'],
    [['--log-level', 'loud'], 'one of debug, info, warn, error'],
    [['--hostname', 'a b'], '--hostname must be'],
  ];
  test.each(faults)('refuses the command line %j', (argv, message) => {
    expect(() => parseArguments(argv)).toThrow(UsageError);
    expect(() => parseArguments(argv)).toThrow(message);
  });
});
