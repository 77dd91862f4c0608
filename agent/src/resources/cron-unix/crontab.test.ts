import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { escapeCommand, parseCrontab, renderJob, scheduleFault } from './crontab.ts';

/** Splits the text after the user in a crontab line into the command and its standard input, as cron does. */
function asCronReads(text: string): { command: string; input: string | null } {
  let command = '';
  let escaped = false;
  for (const [i, char] of [...text].entries()) {
    if (escaped) {
      if (char === '%' || char === '\\') command = command.slice(0, -1);
      command += char;
      escaped = false;
    } else if (char === '%') return { command, input: [...text].slice(i + 1).join('') };
    else {
      command += char;
      escaped = char === '\\';
    }
  }
  return { command, input: null };
}

const awkward = fc.string({ unit: fc.constantFrom('%', '\\', 'a', ' ', '"', "'", '$', '#', 'é') });
const oneLine = fc.oneof(awkward, fc.string({ unit: 'grapheme' })).filter((text) => !/[\n\r\0]/.test(text));

describe('a command', () => {
  test('escapes every command so that cron runs it as declared', () => {
    fc.assert(
      fc.property(oneLine, (command) => {
        expect(asCronReads(escapeCommand(command))).toEqual({ command: command.trim(), input: null });
      }),
    );
  });

  test('escapes only `%` and backslashes that cron would interpret', () => {
    expect(escapeCommand('printf "a\\n" > /tmp/x')).toBe('printf "a\\n" > /tmp/x');
    expect(escapeCommand('date +%F')).toBe('date +\\%F');
    expect(escapeCommand('echo \\\\ \\%')).toBe('echo \\\\\\\\ \\\\\\%');
  });
});

describe('a file', () => {
  test('renders a file with one job, a fixed shell, and a fixed search path', () => {
    expect(renderJob({ schedule: '5  3 * * *', user: 'root', command: '/usr/local/bin/backup' })).toBe(
      [
        '# Written by Muster. Changes by hand are undone by the next apply.',
        'SHELL=/bin/sh',
        'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        '5 3 * * * root /usr/local/bin/backup',
        '',
      ].join('\n'),
    );
  });

  test('parses a rendered job back to its fields', () => {
    const schedules = fc.constantFrom('@daily', '*/5 0-6,22 1 jan-mar mon', '5 3 * * *');
    fc.assert(
      fc.property(
        schedules,
        oneLine.filter((text) => text.trim() !== ''),
        (schedule, command) => {
          const { job } = parseCrontab(renderJob({ schedule, user: 'www-data', command }));
          expect(job).toEqual({ schedule, user: 'www-data', command: command.trim() });
        },
      ),
    );
  });

  test('ignores settings and comments in a file that was edited by hand', () => {
    expect(parseCrontab('MAILTO=me\n# 1 1 1 1 1 root no\n1\t2 * * *  bin  a b\n@daily root second\n')).toEqual({
      job: { schedule: '1 2 * * *', user: 'bin', command: 'a b' },
      others: ['MAILTO=me', '@daily root second'],
    });
    expect(parseCrontab('nothing of the kind').job).toBeNull();
  });
});

describe('schedules', () => {
  test.each(['* * * * *', '*/15 0-6/2,22 1,15 JAN-mar Mon,5-7', '0 0 31 12 0', '@daily', '0 0 * * sun'])(
    'accepts the schedule %s',
    (schedule) => {
      expect(scheduleFault(schedule)).toBeNull();
    },
  );

  test.each([
    ['60 * * * *', 'minute'],
    ['* 24 * * *', 'hour'],
    ['* * 0 * *', 'day of the month'],
    ['* * * 13 *', 'month'],
    ['* * * foo *', 'month'],
    ['* * * * 8', 'day of the week'],
    ['5/5 * * * *', 'minute'],
    ['*/0 * * * *', 'minute'],
    ['10-5 * * * *', 'minute'],
    ['1,,2 * * * *', 'minute'],
    ['1- * * * *', 'minute'],
    ['* * * jan-b *', 'month'],
  ])('refuses the schedule %s because of its %s', (schedule, part) => {
    expect(scheduleFault(schedule)).toContain(`is not a ${part} that cron understands`);
  });
});
