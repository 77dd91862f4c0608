import { describe, expect, test } from 'vitest';
import { compareOutput, filledIn, type Samples, sessionsOf } from './console.ts';

const page = `
On it:

<!-- copied: docs/motd.yml ada@control:motd.yml -->
<!-- typed: y | horse⏎ -->
\`\`\`console
ada@control:~$ muster plan web-1
+ file /etc/motd

…
root@web-1:/etc# cat << END
> one
> END
one
\`\`\`

<!-- repeated: until it is so -->
\`\`\`console
ada@control:~$ exit
\`\`\`
`;

describe('terminal sessions of a page', () => {
  test('reads the commands, users, and output of a terminal session', () => {
    expect(sessionsOf(page)).toEqual([
      {
        line: 6,
        typed: ['y', 'horse⏎'],
        copied: [{ file: 'docs/motd.yml', to: 'ada@control:motd.yml' }],
        repeated: false,
        steps: [
          {
            prompt: 'ada@control:~$',
            command: 'muster plan web-1',
            expected: ['+ file /etc/motd', '', '…'],
            line: 7,
          },
          { prompt: 'root@web-1:/etc#', command: 'cat << END\none\nEND', expected: ['one'], line: 11 },
        ],
      },
      {
        line: 18,
        typed: [],
        copied: [],
        repeated: true,
        steps: [{ prompt: 'ada@control:~$', command: 'exit', expected: [], line: 19 }],
      },
    ]);
  });
});

const none = new Map<string, string>();
const faultOf = (expected: string[], shown: string[]) => compareOutput(expected, shown, none).fault;

describe('comparison of the output with the page', () => {
  test.each([
    [['a  b'], ['  a     b ']],
    [['id …, done'], ['id 01KX, done']],
    [['…'], []],
    [
      ['…', 'end'],
      ['1', 'end', '2', 'end'],
    ],
    [
      ['a', '…', 'c', ''],
      ['a', 'b', '', 'c'],
    ],
    [['BY 3 of PLANNED'], ['BY 3 of PLANNED']],
  ])('matches the lines %j on a page with the output %j', (expected, shown) => {
    expect(faultOf(expected, shown)).toBeNull();
  });

  test.each([
    [['a'], [], 'nothing more'],
    [['a'], ['b'], 'but the output has "b"'],
    [[], ['b'], 'more lines than the page: "b"'],
    [['a.c'], ['abc'], 'expected "a.c"'],
    [['…', 'x', '…'], ['a', 'b'], 'expected "x"'],
    [['a'], ['a', 'b'], 'more lines than the page: "b"'],
    [['run 01KAGZ4D3E5F6G7H8J9K0M1N2P'], ['run it'], 'but the output has "run it"'],
    [['KG4V7EM1 KG4V7EM1'], ['AAAA0000 AAAA0001'], 'but the output has "AAAA0000 AAAA0001"'],
  ])('does not match the lines %j on a page with the output %j', (expected, shown, fault) => {
    expect(faultOf(expected, shown)).toContain(fault);
  });

  test('maps the sample IDs on a page to the same real IDs throughout', () => {
    const first = compareOutput(['SESSION', '… KG4V7EM1 web-1'], ['SESSION', 'x ABCD2345  web-1'], none);
    expect(first).toEqual({ fault: null, samples: new Map([['KG4V7EM1', 'ABCD2345']]) });
    const { samples } = first as { samples: Samples };
    expect(compareOutput(['KG4V7EM1'], ['ABCD2345'], samples).fault).toBeNull();
    expect(compareOutput(['KG4V7EM1'], ['ABCD2346'], samples).fault).toContain('ABCD2346');
    expect(filledIn('muster terminal replay KG4V7EM1', [], samples)).toBe('muster terminal replay ABCD2345');
  });
});

describe('commands with text copied from the terminal', () => {
  const shown = ['curl -k https://a/x | sh -s -- old', 'see curl -k', '  curl -k https://b/x | sh -s -- 7'];
  test('replaces each line of a command with the latest matching output line', () => {
    expect(filledIn('cat > x\ncurl -k … | sh …', shown, none)).toBe('cat > x\ncurl -k https://b/x | sh -s -- 7');
  });

  test('throws if no output line matches the command', () => {
    expect(() => filledIn('wget …', shown, none)).toThrow('no line of the output matches wget …');
  });
});
