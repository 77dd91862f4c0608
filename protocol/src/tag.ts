import { z } from 'zod';
import { isTagValue, tagKeyForm, tagKeyPattern, tagValueForm } from './selector.ts';

/** Tag schemas for the API. Separate from selector.ts, which browsers load without the schema library. */

export const tagKeySchema = z.string().regex(tagKeyPattern, tagKeyForm);

export const tagValueSchema = z.string().refine(isTagValue, tagValueForm).meta({ maxLength: 256 });
