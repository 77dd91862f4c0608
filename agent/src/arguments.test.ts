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

  it('knows help and version wherever they stand', () => {
    expect(parseArguments(['connect', '-h'])).toBe('help');
    expect(parseArguments(['--version'])).toBe('version');
  });

  const faults: [string[], string][] = [
    [['--confg', 'x'], "Unknown option '--confg'"],
    [['--config'], "Option '--config <value>' argument missing"],
    [['conect', 'h:1'], 'did you mean "connect HOST:PORT"?'],
    [['connect'], 'connect needs an address'],
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
