import { z } from 'zod';
import { isTagValue, tagKeyForm, tagKeyPattern, tagValueForm } from './selector.ts';

/** Tags as the API takes them. A file of its own: whoever only reads selectors, as a browser does, loads no schemas. */

/** The key of a tag. */
export const tagKeySchema = z.string().regex(tagKeyPattern, tagKeyForm);

/** The value of a tag; it may be empty. */
export const tagValueSchema = z.string().refine(isTagValue, tagValueForm).meta({ maxLength: 256 });
