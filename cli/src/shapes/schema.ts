import { z } from 'zod';
import { prints, type Shapes } from './shape.ts';

export const shapes: Shapes = {
  // The command prints a shell script.
  completion: null,
  schema: prints(z.looseObject({}).describe('a JSON Schema, draft 2020-12')),
};
