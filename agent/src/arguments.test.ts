import { describe, expect, it } from 'vitest';
import { parseArguments, UsageError } from './arguments.ts';

const key = 'AB'.repeat(32);

describe('the command line', () => {
  it('has defaults', () => {
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

  it('takes an address with its key and token, options on either side', () => {
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

  it('can be asked to remember an address only', () => {
    expect(parseArguments(['connect', 'h:1', '--token', '-', '--save'])).toMatchObject({
      connect: { host: 'h', port: 1, token: '-' },
      save: true,
    });
  });

  it('can be asked to give the agent a new key, the former one being good for a stated time', () => {
    const wish = (...more: string[]) => parseArguments(['rotate-key', ...more]);
    expect(wish()).toMatchObject({ connect: null, rotateKey: { graceSecs: 86_400, json: false } });
    expect(wish('--at-once', '--json')).toMatchObject({ rotateKey: { graceSecs: 0, json: true } });
    for (const [time, graceSecs] of [
      ['90m', 5400],
      ['30d', 2_592_000],
      ['0s', 0],
    ])
      expect(wish('--former-good-for', String(time))).toMatchObject({ rotateKey: { graceSecs } });
  });

  it('knows help and version wherever they stand', () => {
    expect(parseArguments(['connect', '-h'])).toBe('help');
    expect(parseArguments(['--version'])).toBe('version');
  });

  const faults: [string[], string][] = [
    [['--confg', 'x'], "Unknown option '--confg'"],
    [['--config'], "Option '--config <value>' argument missing"],
    [['conect', 'h:1'], 'did you mean "connect HOST:PORT"?'],
    [['connect'], 'connect needs an address'],
    [['rotate-key', 'now'], '"now" is one argument too many'],
    [['rotate-key', '--save'], 'rotate-key goes without'],
    [['rotate-key', '--token', 't'], 'rotate-key goes without'],
    [['rotate-key', '--at-once', '--former-good-for', '1h'], 'either --at-once or --former-good-for'],
    [['rotate-key', '--former-good-for', '31d'], 'at most 30d; not "31d"'],
    [['rotate-key', '--former-good-for', '24'], 'a time such as 90m, 24h or 7d'],
    [['connect', 'h:1', '--at-once'], '--at-once goes with rotate-key'],
    [['--json'], '--json goes with rotate-key'],
    [['connect', 'h'], '"h" is not HOST:PORT'],
    [['connect', 'h:0'], '"h:0" is not HOST:PORT'],
    [['connect', 'h:65536'], 'is not HOST:PORT'],
    [['connect', '2001:db8::1:4747'], 'is not HOST:PORT'],
    [['connect', 'h:1', 'more'], '"more" is one argument too many'],
    [['connect', 'h:1', '--orchestrator-key', 'ab'], '64 hexadecimal digits'],
    [['--token', 't'], 'go with an address'],
    [['--save'], '--save goes with an address'],
    [['--log-format', 'xml'], 'json or text'],
    [['--log-level', 'loud'], 'one of debug, info, warn, error'],
    [['--hostname', 'a b'], '--hostname is'],
  ];
  it.each(faults)('refuses %j', (argv, message) => {
    expect(() => parseArguments(argv)).toThrow(UsageError);
    expect(() => parseArguments(argv)).toThrow(message);
  });
});
