import { z } from 'zod';
import { isTagValue, tagKeyForm, tagKeyPattern, tagValueForm } from './selector.ts';

/** Schemas of tags in the API. Not in selector.ts, which browsers load without the schema library. */

/** The key of a tag. */
export const tagKeySchema = z.string().regex(tagKeyPattern, tagKeyForm);

/** The value of a tag, which may be empty. */
export const tagValueSchema = z.string().refine(isTagValue, tagValueForm).meta({ maxLength: 256 });
