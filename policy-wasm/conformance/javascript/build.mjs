// Called by `maka-policy build`, with the file to write.

import { componentize } from '@bytecodealliance/componentize-js';

import { build } from '../../sdk-js/build.mjs';

await build(componentize);
