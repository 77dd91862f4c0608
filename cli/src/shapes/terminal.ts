import { getTerminal, listTerminals } from '@muster/protocol/http';
import { z } from 'zod';
import { answerOf, doneTo, prints, type Shapes } from './shape.ts';

export const shapes: Shapes = {
  // These commands print terminal output, which is never JSON.
  'terminal open': null,
  'terminal attach': null,
  'terminal replay': null,
  'terminal list': prints(answerOf(listTerminals)),
  'terminal show': prints(answerOf(getTerminal)),
  'terminal download': prints(
    z
      .strictObject({
        session_id: z.string(),
        format: z.enum(['asciicast', 'raw']),
        file: z.string(),
        bytes: z.number().int(),
      })
      .describe('with `-o -` only the transcript is printed'),
  ),
  'terminal close': doneTo('closed'),
};
