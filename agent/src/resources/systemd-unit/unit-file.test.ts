import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Body, isOwn, parseUnit, renderDropIn, renderUnit, unitFault } from './unit-file.ts';

const unit = (body: Partial<Body> = {}): Body => ({ name: 'web', exec_start: '/usr/bin/web --port 80', ...body });

describe('a unit', () => {
  test('renders each field in its section of the unit file', () => {
    const text = renderUnit(
      unit({
        type: 'notify',
        description: 'The web',
        user: 'www',
        group: 'www-data',
        working_directory: '/srv/web',
        environment: { B: '2', A: 'one two' },
        dependencies: ['db', 'data.mount', 'db.service'],
        restart: 'on_failure',
      }),
    );
    expect(text).toBe(
      [
        '# Written by Muster. Changes by hand are undone by the next apply.',
        '[Unit]',
        'Description=The web',
        'Requires=data.mount db.service',
        'After=data.mount db.service',
        '[Service]',
        'Type=notify',
        'User=www',
        'Group=www-data',
        'WorkingDirectory=/srv/web',
        'Environment="A=one two"',
        'Environment="B=2"',
        'Restart=on-failure',
        'ExecStart=/usr/bin/web --port 80',
        '[Install]',
        'WantedBy=multi-user.target',
        '',
      ].join('\n'),
    );
    expect(isOwn(text)).toBe(true);
  });

  test('renders a drop-in only if unit settings are declared', () => {
    expect(renderDropIn({ name: 'web', enabled: true, running: true, environment: {}, dependencies: [] })).toBeNull();
    expect(renderDropIn({ name: 'web', restart: 'never' })).toBe(
      '# Written by Muster. Changes by hand are undone by the next apply.\n[Service]\nRestart=no\n',
    );
  });

  test('does not escape specifiers in the command line, but escapes them in other values', () => {
    const text = renderUnit(unit({ exec_start: '/bin/x %i $A', description: '100% %n', environment: { A: '%h $B' } }));
    expect(text).toContain('ExecStart=/bin/x %i $A\n');
    expect(text).toContain('Description=100%% %%n\n');
    expect(text).toContain('Environment="A=%%h $B"\n');
  });

  test('escapes unit values so that none continues on the next line', () => {
    const text = renderUnit(unit({ description: 'ends in \\', environment: { A: 'one\nExecStart=/bin/evil\\' } }));
    expect(text.split('\n').filter((line) => line.startsWith('ExecStart='))).toHaveLength(1);
    expect(parseUnit(text).fields).toMatchObject({
      description: 'ends in \\',
      exec_start: '/usr/bin/web --port 80',
      environment: 'A="one\\nExecStart=/bin/evil\\\\"',
    });
  });

  const awkward = fc.string({ unit: fc.constantFrom('%', '\\', '"', "'", ' ', '$', '#', ';', '=', '[', 'x', 'é') });
  const value = fc
    .oneof(awkward, fc.string({ unit: 'grapheme' }))
    .filter((text) => unitFault(unit({ environment: { A: text } })) === null);

  test('parses a rendered unit back to its fields', () => {
    fc.assert(
      fc.property(value, value, value, (description, one, two) => {
        const line = description.replaceAll(/[\r\n]/g, '');
        const { fields, others } = parseUnit(
          renderUnit(unit({ description: line, environment: { ONE: one, TWO: two } })),
        );
        expect(fields.description ?? '').toBe(line.trim());
        const shown = (text: string) => (/^[^\s"'\\]*$/.test(text) ? text : JSON.stringify(text));
        expect(fields.environment).toBe(`ONE=${shown(one)} TWO=${shown(two)}`);
        expect(fields.exec_start).toBe('/usr/bin/web --port 80');
        expect(others).toEqual(['Install.WantedBy=multi-user.target']);
      }),
    );
  });

  test('parses a unit that the agent did not write in the same way as systemd', () => {
    const { fields, others } = parseUnit(
      [
        '# a comment',
        '[Unit]',
        'Description = Spaces around',
        'After=network.target',
        '[Service]',
        'ExecStart=/bin/first',
        'ExecStart=',
        'ExecStart=/bin/second \\',
        '  --more',
        'Environment=A=1 \'B=two words\' "C=a\\tb"',
        'Environment=A=3',
        'Restart=on-abnormal',
        'Nice=5',
        '',
      ].join('\n'),
    );
    expect(fields).toEqual({
      description: 'Spaces around',
      dependencies: 'After=network.target',
      exec_start: '/bin/second    --more',
      environment: 'A=3 B="two words" C="a\\tb"',
      restart: 'on-abnormal',
    });
    expect(others).toEqual(['Service.Nice=5']);
  });
});

describe('unit bodies that cannot be rendered', () => {
  test.each<[string, Partial<Body>, string]>([
    ['a template', { name: 'getty@' }, 'instance'],
    ['an empty command line', { exec_start: '  ' }, 'empty'],
    ['a command line that goes on', { exec_start: '/bin/x \\' }, 'backslash'],
    ['a directory with a line break', { working_directory: '/a\nExecStart=/bin/evil' }, 'control character'],
    ['a variable with a control character', { environment: { A: 'bell\x07' } }, 'A contains a control character'],
  ])('refuses %s in a unit', (_what, body, fault) => {
    expect(unitFault(unit(body))).toContain(fault);
  });

  test('accepts line breaks and tabs in an environment variable', () => {
    expect(unitFault(unit({ name: 'getty@tty1', environment: { KEY: '-----BEGIN\n\tx' } }))).toBeNull();
  });
});
