export interface paths {
    "/v0/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow what changes, as server-sent events
         * @description From now on; with `from` from that time on; with `Last-Event-ID` from behind that event, also where another process or an earlier run of Berth has sent it. Only what the key may read. Ids alone, without an event, keep a quiet stream from falling behind. 410 where events behind that id are not kept any more: read what you follow, then begin anew.
         *
         *     Scope: `org:files:read` or `org:groups:read` or `org:gateways:read` or `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         */
        get: operations["streamEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/public/pin_by_cid": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List pin requests that are not pinned yet, or have failed
         * @description Scope: `org:files:read`.
         */
        get: operations["listPinByCid"];
        put?: never;
        /**
         * Pin a CID to the public network
         * @description Answers at once with the record, in status `prechecking`. Follow the operation named by `Operation-Id`, or ask for `Prefer: wait=N`. Once pinned, it is a file: `GET /v3/files/public/{id}`.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["pinByCid"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/public/pin_by_cid/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Withdraw a pin request
         * @description Ends a retrieval under way and removes the request from the queue. A pinned file is deleted as a file.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["cancelPinByCid"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/files/public/pin_by_cid/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a failed pin request
         * @description Starts a new operation for the same request, with all that it was asked with. A request that is under way stays unchanged; `Operation-Id` then names its operation. An `Idempotency-Key` has no effect: a repeat after the new operation has failed starts another one.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["retryPinByCid"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/psa/pins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List pins
         * @description The newest first; files that were uploaded are among them. More than `limit` come only where more were created in one millisecond.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["psaListPins"];
        put?: never;
        /**
         * Pin a CID
         * @description Scope: `org:files:write`.
         */
        post: operations["psaAddPin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/psa/pins/{requestid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a pin
         * @description Scope: `org:files:read`.
         */
        get: operations["psaGetPin"];
        put?: never;
        /**
         * Replace a pin
         * @description The new pin has an id of its own, and the old one is gone at once. What the old one kept is released after the new one has been retrieved: blocks that both have are not fetched again.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["psaReplacePin"];
        /**
         * Remove a pin
         * @description It is gone at once; an operation releases its content unless another file keeps it.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["psaRemovePin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload a file, a folder or a CAR
         * @description Answers once the content is pinned. A form that has `network` before `file` has `car` and `cid_version` before it too, and is written straight to the IPFS node. The MIME type is told from the bytes; where they show no more than text or XML, or nothing known, the Content-Type of the part says which. A CAR (paid plans, public network) is imported by the request itself: its answer is the outcome.
         *
         *     With `Upload-Length` and `Upload-Metadata` in place of a form, it begins a resumable upload (tus 1.0.0): the answer is 201, and `Location` is where to send the bytes. The metadata has the fields of the form, `filename` and `filetype`, and `folder`: with `true` the bytes are a CAR of a folder, which stands for the several files of a form and is taken wherever those are.
         *
         *     Scope: `org:files:write` or `org:private_files:write`.
         */
        post: operations["uploadFile"];
        delete?: never;
        /**
         * Ask what resumable uploads can do
         * @description tus 1.0.0, and what a browser asks before a page of another origin may upload.
         *
         *     Also at `/v3/files/{network}`, `/v3/files/tus/{id}/{token}`.
         */
        options: operations["resumableUploadOptions"];
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pinning/pinFileToIPFS": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload a file or a folder, the older way
         * @description To the public network, unless the address or the form names the private one, or the key is one for private uploads (`org:private_files:write`). The `pinata` SDK sends folders here, and sends none of the network that its caller named.
         *
         *     Scope: `org:files:write` or `org:private_files:write`.
         *
         *     Also at `/v3/pinning/pinFileToIPFS`.
         */
        post: operations["pinFileToIPFS"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pinning/pinJSONToIPFS": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload JSON as a file, the older way
         * @description To the public network. The body is `{"pinataContent": …, "pinataMetadata": …, "pinataOptions": …}`, or the content itself: an object without these fields. The file has it without blanks.
         *
         *     Scope: `org:files:write`.
         *
         *     Also at `/v3/pinning/pinJSONToIPFS`.
         */
        post: operations["pinJSONToIPFS"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/sign": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a URL for uploads without a key
         * @description Whoever has the URL uploads by it as often as they like until it expires, within the rate limit of the plan, which counts all uploads by the URLs of a key. It ends earlier when the key that signed it is revoked, or its user leaves the workspace. With `url`, the same as `POST /v3/files/private/download_link`.
         *
         *     Scope: `org:files:write` or `org:private_files:write`.
         */
        post: operations["signUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/private/download_link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a link to a private file
         * @description Whoever has the link reads the file by it until it expires.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["signDownload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/files/private/{id}/link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a link to a private file, to look at it
         * @description At the oldest gateway of the workspace, good for 15 minutes. For who may read alone; `POST /v3/files/private/download_link` makes links that are good for longer, to be handed on.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["linkToFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/{network}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List files
         * @description Scope: `org:files:read`.
         */
        get: operations["listFiles"];
        put?: never;
        /**
         * Upload by a signed URL
         * @description The address is what `POST /v3/files/sign` gave out; no key is needed. The body is that of `POST /v3/files`; with `Upload-Length`, it begins a resumable upload as there. What the URL fixes, the upload cannot change.
         */
        post: operations["uploadBySignedUrl"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/tus/{id}/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Give a resumable upload up
         * @description tus 1.0.0.
         */
        delete: operations["terminateUpload"];
        options?: never;
        /**
         * Ask how far a resumable upload is
         * @description tus 1.0.0. `Upload-Offset` is where to go on. Where all bytes have arrived, the answer waits for the file, and has its CID in `upload-cid`. A request that finds the upload busy for 50 seconds is answered 423, and may be repeated.
         */
        head: operations["describeUpload"];
        /**
         * Send bytes of a resumable upload
         * @description tus 1.0.0. The answer to the last bytes comes once the file is there, and has its CID in `upload-cid`. A client that misses that answer repeats its request, or asks with HEAD. A request that finds the upload busy for 50 seconds is answered 423, and may be repeated.
         */
        patch: operations["appendToUpload"];
        trace?: never;
    };
    "/v3/files/{network}/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a file
         * @description Scope: `org:files:read`.
         */
        get: operations["getFile"];
        /**
         * Change a file's name, metadata or end
         * @description What is left out stays as it is.
         *
         *     Scope: `org:files:write`.
         */
        put: operations["updateFile"];
        post?: never;
        /**
         * Delete a file
         * @description The file is gone at once; an operation unpins its content unless another file keeps it.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["deleteFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pinning/pinByHash": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pin a CID to the public network, the older way
         * @description Answers at once. `GET /v3/files/public/pin_by_cid` has the request until it is pinned.
         *
         *     Scope: `org:files:write`.
         *
         *     Also at `/v3/pinning/pinByHash`.
         */
        post: operations["pinByHash"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/data/pinList": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List files, the older way
         * @description The newest first. Berth does not list deleted files: `status=unpinned` finds none.
         *
         *     Scope: `org:files:read`.
         *
         *     Also at `/v3/data/pinList`.
         */
        get: operations["pinList"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pinning/unpin/{hash}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete all files and pin requests of a CID, the older way
         * @description Scope: `org:files:write`.
         *
         *     Also at `/v3/pinning/unpin/{hash}`.
         */
        delete: operations["unpin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/files/{network}/{id}/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what is in a folder
         * @description The entries of a file that is a folder, or of a folder within it: by name, unless it is sharded. What swaps put in its place is not looked at.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["listEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/files/{network}/{id}/details": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a file's signature and swaps
         * @description Both in one request, which also succeeds for a file that has neither.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["getFileDetails"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/groups/{network}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List groups
         * @description Scope: `org:groups:read`.
         */
        get: operations["listGroups"];
        put?: never;
        /**
         * Create a group
         * @description It takes files of its own network only.
         *
         *     Scope: `org:groups:write`.
         */
        post: operations["createGroup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/groups/{network}/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a group
         * @description Scope: `org:groups:read`.
         */
        get: operations["getGroup"];
        /**
         * Change a group's name, or whether it is public
         * @description What is left out stays as it is.
         *
         *     Scope: `org:groups:write`.
         */
        put: operations["updateGroup"];
        post?: never;
        /**
         * Delete a group; its files stay
         * @description Scope: `org:groups:write`.
         */
        delete: operations["deleteGroup"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/groups/{network}/{id}/ids/{fileId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Put a file into a group
         * @description A file is in one group or none: it leaves the one that it was in.
         *
         *     Scope: `org:groups:write`.
         */
        put: operations["addFileToGroup"];
        post?: never;
        /**
         * Take a file out of a group
         * @description The file stays. One that is not in the group is left where it is.
         *
         *     Scope: `org:groups:write`.
         */
        delete: operations["removeFileFromGroup"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/{network}/swap/{cid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the swap history of a CID
         * @description The history belongs to the workspace of the gateway. That of a public CID may be read with the key of any workspace.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["swapHistory"];
        /**
         * Swap a CID
         * @description From now on the gateways of the workspace that have the hot swaps plugin serve the new content under the address of the original. Both must be files of the workspace on this network. A swap is one step: what the new CID is swapped to does not count. Doing it again changes nothing. The first swap of a workspace installs the plugin in its oldest gateway, unless another one has it.
         *
         *     Scope: `org:files:write`.
         */
        put: operations["swapCid"];
        post?: never;
        /**
         * Take a swap back
         * @description The original is served again. The removal is an entry of the history, without a CID.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["deleteSwap"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/ipfs/swap/{cid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the swap history of a CID
         * @description The history belongs to the workspace of the gateway. That of a public CID may be read with the key of any workspace.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["swapHistoryOlder"];
        /**
         * Swap a CID
         * @description From now on the gateways of the workspace that have the hot swaps plugin serve the new content under the address of the original. Both must be files of the workspace on this network. A swap is one step: what the new CID is swapped to does not count. Doing it again changes nothing. The first swap of a workspace installs the plugin in its oldest gateway, unless another one has it.
         *
         *     Scope: `org:files:write`.
         */
        put: operations["swapCidOlder"];
        post?: never;
        /**
         * Take a swap back
         * @description The original is served again. The removal is an entry of the history, without a CID.
         *
         *     Scope: `org:files:write`.
         */
        delete: operations["deleteSwapOlder"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/files/{network}/signature/{cid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the signature of a CID
         * @description It stays when the file is deleted.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["getSignature"];
        put?: never;
        /**
         * Add a signature to a CID
         * @description The CID must be a file of the workspace, and have no other signature. The form is checked, and not whether the address has signed it: who reads it checks that with the date that was signed.
         *
         *     Scope: `org:files:write`.
         */
        post: operations["addSignature"];
        /**
         * Remove the signature of a CID
         * @description Scope: `org:files:write`.
         */
        delete: operations["deleteSignature"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the plugins of all gateways
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateway_plugins`.
         */
        get: operations["listPlugins"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins/marketplace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the plugins that a gateway may have
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/plugins_marketplace`.
         */
        get: operations["listOfferedPlugins"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins/marketplace/{plugin_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a plugin that a gateway may have
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/plugins_marketplace/{plugin_id}`.
         */
        get: operations["getOfferedPlugin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins/{gateway_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the plugins of a gateway
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateway_plugins/{gateway_id}`.
         */
        get: operations["listGatewayPlugins"];
        put?: never;
        /**
         * Install a plugin in a gateway
         * @description Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateway_plugins/{gateway_id}`.
         */
        post: operations["installPlugin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/plugins/{gateway_id}/plugin/{plugin_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a plugin from a gateway
         * @description Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateway_plugins/{gateway_id}/plugin/{plugin_id}`.
         */
        delete: operations["removePlugin"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List gateways
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateways`.
         */
        get: operations["listGateways"];
        put?: never;
        /**
         * Create a gateway
         * @description A new gateway has no plugins, and is open to everybody until it gets an access token.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways`.
         */
        post: operations["createGateway"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/exists/{domain}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find out whether the name of a gateway is taken
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateways/exists/{domain}`.
         */
        get: operations["gatewayExists"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a gateway
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateways/{id}`.
         */
        get: operations["getGateway"];
        put?: never;
        post?: never;
        /**
         * Delete a gateway
         * @description Files and swaps stay. The name is free for anybody from then on.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}`.
         */
        delete: operations["deleteGateway"];
        options?: never;
        head?: never;
        /**
         * Change what a gateway serves
         * @description A field that is left out stays as it is. Other web processes follow within two seconds.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}`.
         */
        patch: operations["changeGatewayServing"];
        trace?: never;
    };
    "/v3/gateways/{id}/access_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create an access token of a gateway
         * @description With its first token a gateway becomes restricted: within two seconds it serves public content only to those who send a token as `?pinataGatewayToken=` or in `x-pinata-gateway-token`.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/access_tokens`.
         */
        post: operations["createGatewayToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}/access_tokens/{item_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an access token of a gateway
         * @description Without its last token a gateway is open to everybody: create the new one first.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/access_tokens/{item_id}`.
         */
        delete: operations["deleteGatewayToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}/custom_domain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add a custom domain to a gateway
         * @description At most 5 for each gateway. It is `pending` until its TXT record (`txt_name`, `txt_value`) is seen: at once when it is there already, otherwise with `verifyGatewayDomain`, or by itself within a while, which gets longer, for two weeks. The record is the same as for agents of the workspace. Who proves a name first has it: 409 for it from then on. A name must not contain or look like the names of the service, nor be one of its hosts. Custom domains are not part of the free plan.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/custom_domain`.
         */
        post: operations["addGatewayDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}/custom_domain/{custom_domain_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a custom domain of a gateway
         * @description Scope: `org:gateways:read`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/custom_domain/{custom_domain_id}`.
         */
        get: operations["getGatewayDomain"];
        put?: never;
        post?: never;
        /**
         * Delete a custom domain of a gateway
         * @description The name is free for anybody from then on; web processes serve there for two seconds more at most.
         *
         *     Scope: `org:gateways:write`.
         *
         *     Also at `/v3/ipfs/gateways/{id}/custom_domain/{custom_domain_id}`.
         */
        delete: operations["deleteGatewayDomain"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/gateways/{id}/custom_domain/{custom_domain_id}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Look for the TXT record of a custom domain now
         * @description 409 when another one has proven it before, 503 when no DNS server answers; then it stays pending.
         *
         *     Scope: `org:gateways:write`.
         */
        post: operations["verifyGatewayDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/analytics/gateways/top": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What a gateway serves most, and to which programs and pages
         * @description What gateways answered for content that their workspace keeps: requests and bytes, with a minute’s delay at most. Client addresses are not stored, so nothing is known of countries and regions. A day of a gateway has at most 2,000 different rows; what is beyond them is counted as `(other)`. By `country` and `region` the list is empty.
         *
         *     Scope: `org:analytics:read`.
         *
         *     Also at `/v3/ipfs/gateway_analytics_top`.
         */
        get: operations["topAnalytics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/analytics/gateways/time_series": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What a gateway served by day or week
         * @description What gateways answered for content that their workspace keeps: requests and bytes, with a minute’s delay at most. Client addresses are not stored, so nothing is known of countries and regions. A day of a gateway has at most 2,000 different rows; what is beyond them is counted as `(other)`. Weeks begin on Monday. Periods without a request are left out.
         *
         *     Scope: `org:analytics:read`.
         *
         *     Also at `/v3/ipfs/gateway_analytics_time_series`.
         */
        get: operations["analyticsTimeSeries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/data/testAuthentication": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Test an API key
         * @description Any key will do.
         *
         *     Also at `/data/testAuthentication`.
         */
        get: operations["testAuthentication"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/data/userPinnedDataTotal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the files of both networks, and their bytes
         * @description Scope: `org:files:read`.
         *
         *     Also at `/data/userPinnedDataTotal`.
         */
        get: operations["getPinnedTotal"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What is stored, and what the plan allows
         * @description Scope: `org:files:read`.
         */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/pinata/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys
         * @description Owners see all keys of the workspace, others their own.
         *
         *     Scope: `org:read`.
         *
         *     Also at `/v3/api_keys`.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create an API key
         * @description A key may grant no more than the key that creates it, and expires with it. One that a session of the dashboard creates stays behind the session. A key with a limited number of uses creates none.
         *
         *     Scope: `org:write`.
         *
         *     Also at `/v3/api_keys`.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/pinata/keys/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Revoke an API key
         * @description Another key than the own one only where the own one has all of its scopes. Members see to keys of their own, owners to all.
         *
         *     Scope: `org:write`.
         */
        put: operations["revokeKey"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v3/api_keys/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key
         * @description Another key than the own one only where the own one has all of its scopes. Members see to keys of their own, owners to all.
         *
         *     Scope: `org:write`.
         */
        delete: operations["deleteKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the workspaces that the key reaches
         * @description A key reaches one: this is how its holder learns the id.
         *
         *     Scope: `org:read`.
         */
        get: operations["listWorkspaces"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the workspace, its plan and what it uses
         * @description Scope: `org:read`.
         */
        get: operations["getWorkspace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Rename the workspace
         * @description Its gateways keep their names. A name that another workspace has gets a number.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         */
        patch: operations["renameWorkspace"];
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List members
         * @description Scope: `org:read`.
         *
         *     For owners of the workspace only.
         */
        get: operations["listMembers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/members/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Take a member out of the workspace
         * @description The member’s keys of it end at once, and stay without use where the member comes back. 409 for the last owner, whom a workspace keeps.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         */
        delete: operations["removeMember"];
        options?: never;
        head?: never;
        /**
         * Give a member another role
         * @description At once for all of the member’s keys. 409 for the last owner, whom a workspace keeps.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         */
        patch: operations["changeMember"];
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/invitations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List invitations
         * @description Scope: `org:read`.
         *
         *     For owners of the workspace only.
         */
        get: operations["listInvitations"];
        put?: never;
        /**
         * Invite somebody
         * @description Whoever is handed the token becomes a member, once. 403 `Invitation limit reached` while 100 wait, and for a key with a limited number of uses.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         */
        post: operations["createInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/invitations/{invitationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an invitation
         * @description One that has ended stays as it is. 409 for one that was accepted: remove the member instead.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         */
        delete: operations["revokeInvitation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/invitations/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept an invitation as a new user
         * @description No key is needed: the token is the permission. A name that another user has gets a number.
         */
        post: operations["acceptInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys with their last use
         * @description Owners see all keys of the workspace, others their own.
         *
         *     Scope: `org:read`.
         */
        get: operations["listWorkspaceKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/workspaces/{workspaceId}/keys/{keyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key, by its id
         * @description Another key than the own one only where the own one has all of its scopes. Members see to keys of their own, owners to all.
         *
         *     Scope: `org:write`.
         */
        delete: operations["revokeWorkspaceKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which ways to sign in there are
         * @description Beside login links, which there are always.
         */
        get: operations["waysToSignIn"];
        put?: never;
        /**
         * Sign in with the token of a login link
         * @description A link is good once, for 15 minutes: `npm start` and `npx berth login-link` print one. The session’s cookie comes with the answer. 403 for a page of another origin.
         */
        post: operations["login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login/invitation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept an invitation as a new user, and sign in
         * @description For people: programs accept one with a key as the answer. The session’s cookie comes with the answer. 403 for a page of another origin. A name that another user has gets a number.
         */
        post: operations["loginByInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the session that asks
         * @description 403 for a key, which is revoked in other ways.
         *
         *     Any key will do.
         */
        post: operations["logout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who asks, and what they may do
         * @description Any key will do.
         */
        get: operations["whoAmI"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sessions of the user
         * @description Those in this workspace that have not ended, newest first.
         *
         *     Scope: `org:read`.
         */
        get: operations["listSessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/sessions/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Go on in another workspace of the user
         * @description The session goes on there with the cookie that it has, and ends when it would have; what it has open here ends. It is another one in the list of sessions, with an id of its own. 403 for who is no member there, and for a key, which is of one workspace.
         *
         *     Any key will do.
         */
        post: operations["moveSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/sessions/join": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept an invitation as the user of the session
         * @description The session goes on in the workspace that is joined, as when it is moved there. 409 for a member of it. 403 for a key: whoever holds one must not decide where its user signs in.
         *
         *     Any key will do.
         *
         *     Also at `/v0/invitations/join`.
         */
        post: operations["joinWithSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/sessions/{sessionId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a session of the user
         * @description At once. By another session of the user, or by a key of theirs with `admin`.
         *
         *     Any key will do.
         */
        delete: operations["revokeSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login/passkey/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin to sign in with a passkey
         * @description What `navigator.credentials.get` takes as `publicKey`, by `PublicKeyCredential.parseRequestOptionsFromJSON`. Its challenge is good once, for 5 minutes.
         */
        post: operations["beginPasskeyLogin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login/passkey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in with a passkey
         * @description The session’s cookie comes with the answer. 403 for who is no member of the workspace.
         */
        post: operations["loginWithPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/passkeys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the passkeys of the user
         * @description In all workspaces they are the same. Newest first; there are 20 at most.
         *
         *     Scope: `org:read`.
         */
        get: operations["listPasskeys"];
        put?: never;
        /**
         * Keep a passkey that was made
         * @description Of a session alone: 403 for keys. 409 for one that is known.
         *
         *     Any key will do.
         */
        post: operations["createPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/passkeys/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin to make a passkey
         * @description What `navigator.credentials.create` takes as `publicKey`, by `PublicKeyCredential.parseCreationOptionsFromJSON`. Its challenge is good once, for 5 minutes. Of a session alone: 403 for keys, and for who has 20.
         *
         *     Any key will do.
         */
        post: operations["beginPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/passkeys/{passkeyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a passkey
         * @description Nobody signs in by it any more; sessions that it opened go on. Of a session alone: 403 for keys.
         *
         *     Any key will do.
         */
        delete: operations["deletePasskey"];
        options?: never;
        head?: never;
        /**
         * Rename a passkey
         * @description Of a session alone: 403 for keys.
         *
         *     Any key will do.
         */
        patch: operations["renamePasskey"];
        trace?: never;
    };
    "/v0/login/oidc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin to sign in at the OpenID provider
         * @description The page goes to `url`, and the provider sends it back to `/login` with a query, which is good in this browser once, for 10 minutes. 404 where no provider is set, and for an invitation that nobody can accept.
         */
        post: operations["beginOidcLogin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/login/oidc/finish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in with the answer of the OpenID provider
         * @description The session’s cookie comes with the answer. 403 for somebody who is not known here, 404 and 409 as of the invitation that it accepts.
         */
        post: operations["loginWithOidc"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the identities of the user
         * @description At the OpenID provider. In all workspaces they are the same. Newest first; there are 10 at most.
         *
         *     Scope: `org:read`.
         */
        get: operations["listIdentities"];
        put?: never;
        /**
         * Link an identity with the user
         * @description By the answer of the OpenID provider. Of a session alone: 403 for keys, and for who has 10. 409 for an identity of another user.
         *
         *     Any key will do.
         */
        post: operations["linkIdentity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/identities/begin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin to link an identity
         * @description As for a sign-in, but that the `state` in the query begins with `link.`. Of a session alone: 403 for keys. 404 where no provider is set.
         *
         *     Any key will do.
         */
        post: operations["beginIdentity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/identities/{identityId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Unlink an identity
         * @description It signs nobody in any more; sessions that it opened go on. Of a session alone: 403 for keys.
         *
         *     Any key will do.
         */
        delete: operations["unlinkIdentity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/feedback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Tell the operator something
         * @description It is kept with the names of the workspace and the user, and with the key or the agent whose token it was. 403 `Feedback limit reached` where 20 messages of the key or the agent, or 100 of the workspace, wait for the operator.
         *
         *     Any key will do.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         */
        post: operations["sendFeedback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List webhooks
         * @description Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks`.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Have a URL told of events
         * @description https, to a host on the public internet, unless the operator allows another one by name. 403 `Webhook limit reached` at 20. 503 `Secrets not configured` where the operator wants no secrets to be stored.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks`.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a webhook
         * @description Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks/{id}`.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook
         * @description What still waits is not sent.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks/{id}`.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook, or switch it off or on
         * @description What is left out stays as it is. Switched off, it ends what waits; switched on, it is told of what happens from then on.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks/{id}`.
         */
        patch: operations["changeWebhook"];
        trace?: never;
    };
    "/v0/webhooks/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a webhook another secret
         * @description The former one signs as well for 24 hours, so that receivers can change it without losing anything.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks/{id}/rotate`.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a webhook a test
         * @description A delivery of the type `webhook.test`, whatever the webhook listens to. 409 while it is disabled. How it went is in the delivery.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks/{id}/test`.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what a webhook was sent, or is to be sent
         * @description Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks/{id}/deliveries`.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}/deliveries/{deliveryId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a delivery with what is sent
         * @description Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks/{id}/deliveries/{deliveryId}`.
         */
        get: operations["getDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/webhooks/{id}/deliveries/{deliveryId}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a delivery once more
         * @description With the same `webhook-id`, and all its attempts from the beginning. 409 while it is under way or the webhook is disabled.
         *
         *     Scope: `admin`.
         *
         *     For owners of the workspace only.
         *
         *     Also at `/v3/webhooks/{id}/deliveries/{deliveryId}/redeliver`.
         */
        post: operations["redeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/plans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List plans with their limits
         * @description All of them, by name. They are rows of the database, which the operator changes there.
         *
         *     Scope: `instance:read`.
         */
        get: operations["listPlans"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the workspaces of the instance, and what each uses
         * @description Scope: `instance:read`.
         */
        get: operations["listAllWorkspaces"];
        put?: never;
        /**
         * Create a workspace
         * @description With a gateway, a user who owns it, and a key of that user with `admin`. 409 for a name that another workspace has.
         *
         *     Scope: `instance:write`.
         */
        post: operations["createWorkspace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/workspaces/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a workspace, and what it uses
         * @description Scope: `instance:read`.
         */
        get: operations["getAnyWorkspace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Put a workspace on another plan, or rename it
         * @description What is left out stays as it is. A plan applies at once to all keys of the workspace. 409 for a name that another one has.
         *
         *     Scope: `instance:write`.
         */
        patch: operations["changeWorkspace"];
        trace?: never;
    };
    "/v0/admin/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What the instance keeps in all
         * @description Content that two workspaces keep counts twice. At most two seconds old.
         *
         *     Scope: `instance:read`.
         */
        get: operations["getInstanceUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How each part of the instance is, and what to do about it
         * @description The parts of `/readyz`, as this web process and all workers see them, with the cause and an advice where one is not well.
         *
         *     Scope: `instance:read`.
         */
        get: operations["getInstanceHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the queues: what waits, what runs, and for how long
         * @description At most two seconds old.
         *
         *     Scope: `instance:read`.
         */
        get: operations["listQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List workers with their versions, slots and last heartbeats
         * @description One that ended by itself is not there any more; one that died, for an hour.
         *
         *     Scope: `instance:read`.
         */
        get: operations["listWorkers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List who did what in the workspace
         * @description Every request that is no read, and every sign-in. With `Accept: application/x-ndjson`: all that fit, a JSON object in each line, without pages.
         *
         *     Scope: `org:read`.
         *
         *     For owners of the workspace only.
         */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/admin/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List who did what in the instance
         * @description As `GET /v0/audit`, of all workspaces, with what is of none: refused sign-ins and commands. With `Accept: application/x-ndjson`: all that fit, a JSON object in each line, without pages.
         *
         *     Scope: `instance:read`.
         */
        get: operations["listInstanceAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List operations
         * @description Those that the key may read: on files with `org:files:read`, on agents with `org:agents:read`.
         *
         *     Scope: `org:files:read` or `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listOperations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/operations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an operation, or wait for its end
         * @description Scope: `org:files:read` or `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["getOperation"];
        put?: never;
        post?: never;
        /**
         * Cancel an operation
         * @description What it was to make is withdrawn with it. A running operation ends within about a second. It takes the scope to change what it is about.
         *
         *     Scope: `org:files:write` or `org:agents:write`.
         */
        delete: operations["cancelOperation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/operations/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream an operation as server-sent events
         * @description An `operation` event now and after each change; the stream ends with the operation. The event id is a version: a client that comes back with `Last-Event-ID` hears only what is newer.
         *
         *     Scope: `org:files:read` or `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["streamOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/restart": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restart an agent, also on another version of its engine
         * @description Its gateway is started again with its secrets, channels and settings as they are now, and its `start` script after it. Where another `version` cannot run the agent (an older one may not read what a newer one wrote) the answer is 400 with the reason in `Error-Detail`, and the agent runs on the version that it had.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["restartAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/scripts/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run the scripts of an agent again
         * @description `build`, then `start`. The answer does not wait for their end: the status shows them.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["retryScripts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/available-agent-versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions on which an agent can be restarted
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listAgentVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/update": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Ask whether there is a newer version for an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["getAgentUpdate"];
        put?: never;
        /**
         * Restart an agent on the newest version
         * @description The same as a restart with that `version`; another one where `tag` names it.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["updateAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/engines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the engines that agents can have
         * @description Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listEngines"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/available-agent-versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of engines that agents can run
         * @description Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listEngineVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the models that a new agent can have without a key
         * @description The operator’s, and those of Ollama (port 11434), LM Studio (1234) and llama.cpp (8080) on loopback, where agents are processes of the same machine. `localModel` of a new agent takes one of these.
         *
         *     Scope: `org:agents:read`.
         */
        get: operations["findModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List how much memory each agent uses now
         * @description Of those that run and answer, in the order of the list of agents and with pages as there. A worker reads it every few seconds of agents that measure every 15 seconds.
         *
         *     Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listAgentUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what an agent uses: memory, processor, disk
         * @description As it is measured in the sandbox, every 15 seconds, of the last hour; a restart of the sandbox begins anew.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readAgentUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List agents
         * @description The oldest first. Where there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page.
         *
         *     Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listAgents"];
        put?: never;
        /**
         * Create an agent
         * @description Waits up to 60 seconds until the agent is up (`Prefer` changes that), and answers with the agent as it is then: `running`, or still `starting`; the operation shows the steps. Where its gateway does not come up the answer is 500 with the agent, which is there, and can be restarted. An agent without a model is `running` as well: `statusReason` says how to give it one.
         *
         *     With `templateId` its first files are those of a template, and what the manifest of that asks for (skills, tasks, routes, a model) is done once its gateway is up. Secrets that it names are not attached by it. 404 for a template or a skill that is not there.
         *
         *     Where agents could read the keys of Berth it is 403 `agents_not_walled`, unless the operator has accepted that.
         *
         *     A name must not have control characters, line breaks, characters that turn the direction of text, or any of < > " ` \\.
         *
         *     Scope: `org:agents:write`.
         *
         *     A platform token that is good for the workspace will do.
         */
        post: operations["createAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an agent
         * @description What it is, what is attached to it, and how its gateway and its disk are now.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["getAgent"];
        put?: never;
        post?: never;
        /**
         * Delete an agent with its container and files
         * @description The agent is gone at once, and for good: its id is not given out again. The answer waits until its container and volume are removed; 202 when that takes longer than 25 seconds.
         *
         *     Scope: `org:agents:write`.
         *
         *     Not with the agent’s own tokens.
         */
        delete: operations["deleteAgent"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/platform/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change what an agent is called
         * @description What is left out stays as it is, null removes it. The agent’s own environment has it after its next restart.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        patch: operations["changeMetadata"];
        trace?: never;
    };
    "/v0/agents/{agentId}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get how an agent is
         * @description Its gateway, its scripts and its disk, as they are now, and skills that it lacks.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["getAgentStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the secrets of the workspace
         * @description Every one, the newest first, with the agents that have it.
         *
         *     Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listSecrets"];
        put?: never;
        /**
         * Add a secret to the workspace
         * @description It is stored encrypted, and is an environment variable of the agents that it is attached to. 400 for a name that the agents’ own programs need, 403 `Secret limit reached`, 409 `Duplicate secret name`, 503 `Secrets not configured` where the operator wants none to be stored.
         *
         *     **Reserved names** (`*` stands for any rest): `BASHOPTS`, `BASH_ENV`, `BASH_LOADABLES_PATH`, `ENV`, `FPATH`, `HOME`, `HOSTNAME`, `IFS`, `LOGNAME`, `OLDPWD`, `PATH`, `PROMPT_COMMAND`, `PS0`, `PS1`, `PS2`, `PS4`, `PWD`, `SHELL`, `SHELLOPTS`, `TMPDIR`, `USER`, `XDG_*`, `ZDOTDIR`, `GCONV_PATH`, `GLIBC_TUNABLES`, `LD_*`, `LOCPATH`, `MALLOC_ARENA_MAX`, `OPENSSL_CONF`, `OPENSSL_ENGINES`, `OPENSSL_MODULES`, `BUN_OPTIONS`, `NODE_COMPILE_CACHE`, `NODE_EXTRA_CA_CERTS`, `NODE_ICU_DATA`, `NODE_OPTIONS`, `NODE_PATH`, `NODE_REPL_EXTERNAL_MODULE`, `NODE_TLS_REJECT_UNAUTHORIZED`, `NODE_USE_ENV_PROXY`, `NODE_V8_COVERAGE`, `NPM_CONFIG_*`, `PNPM_CONFIG_*`, `YARN_PLUGINS`, `YARN_RC_FILENAME`, `YARN_YARN_PATH`, `BUNDLE_GEMFILE`, `CARGO_BUILD_*`, `CARGO_HOME`, `CARGO_TARGET_*`, `CC`, `CLASSPATH`, `CORECLR_*`, `CXX`, `DOTNET_ADDITIONAL_DEPS`, `DOTNET_STARTUP_HOOKS`, `ERL_AFLAGS`, `ERL_FLAGS`, `ERL_LIBS`, `ERL_ZFLAGS`, `GEM_HOME`, `GEM_PATH`, `GNUMAKEFLAGS`, `GOENV`, `GOFLAGS`, `GRADLE_OPTS`, `JAVA_OPTS`, `JAVA_TOOL_OPTIONS`, `JDK_JAVA_OPTIONS`, `JULIA_DEPOT_PATH`, `JULIA_LOAD_PATH`, `LUA_CPATH*`, `LUA_INIT*`, `LUA_PATH*`, `MAKEFILES`, `MAKEFLAGS`, `MAVEN_ARGS`, `MAVEN_OPTS`, `PERL5*`, `PERLLIB`, `PHPRC`, `PHP_INI_SCAN_DIR`, `PIP_*`, `PYTHONBREAKPOINT`, `PYTHONEXECUTABLE`, `PYTHONHOME`, `PYTHONINSPECT`, `PYTHONPATH`, `PYTHONPLATLIBDIR`, `PYTHONPYCACHEPREFIX`, `PYTHONSTARTUP`, `PYTHONUSERBASE`, `PYTHONWARNINGS`, `RUBYLIB`, `RUBYOPT`, `RUSTC`, `RUSTC_*`, `R_ENVIRON*`, `R_LIBS*`, `R_PROFILE*`, `UV_CONFIG_FILE`, `_JAVA_OPTIONS`, `BROWSER`, `CURL_HOME`, `CVS_RSH`, `EDITOR`, `EXINIT`, `HGEDITOR`, `HGRCPATH`, `LESSCLOSE`, `LESSOPEN`, `MANPAGER`, `PAGER`, `RSYNC_RSH`, `SSH_ASKPASS*`, `SUDO_ASKPASS`, `SVN_EDITOR`, `SVN_SSH`, `TAR_OPTIONS`, `VIMINIT`, `VISUAL`, `WGETRC`, `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, `SSL_CERT_DIR`, `SSL_CERT_FILE`, `GIT_ALTERNATE_OBJECT_DIRECTORIES`, `GIT_ASKPASS`, `GIT_COMMON_DIR`, `GIT_CONFIG*`, `GIT_DIR`, `GIT_EDITOR`, `GIT_EXEC_PATH`, `GIT_EXTERNAL_DIFF`, `GIT_INDEX_FILE`, `GIT_OBJECT_DIRECTORY`, `GIT_PAGER`, `GIT_PROXY_COMMAND`, `GIT_SEQUENCE_EDITOR`, `GIT_SSH*`, `GIT_TEMPLATE_DIR`, `GIT_WORK_TREE`, `AGENTD_*`, `AGENTS_API_URL`, `AGENT_*`, `BERTH_*`, `OPENCLAW_*`, `USER_EMAIL`, `USER_NAME`.
         *
         *     Scope: `org:agents:write`.
         *
         *     A platform token that is good for the workspace will do.
         */
        post: operations["createSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/secrets/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Give a secret another value
         * @description Agents get it with their next restart; until then it is not `synced` in them.
         *
         *     Scope: `org:agents:write`.
         */
        put: operations["updateSecret"];
        post?: never;
        /**
         * Delete a secret that no agent has
         * @description 409 while it is attached; `Error-Detail` names the agents.
         *
         *     Scope: `org:agents:write`.
         */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the secrets of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listAgentSecrets"];
        put?: never;
        /**
         * Attach secrets to an agent
         * @description All of them or none. The agent gets them with its next restart. The credential of a model provider of which it had none restarts it at once: then the answer has that `operation`, and its id is in `Operation-Id`.
         *
         *     **Conflicting secrets** (409): an agent can have one credential of a provider. *alibaba*: `DASHSCOPE_API_KEY`, `MODELSTUDIO_API_KEY`, `QWEN_API_KEY`; *anthropic*: `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_OAUTH_TOKEN`, `CLAUDE_CODE_OAUTH_TOKEN`; *chutes*: `CHUTES_API_KEY`, `CHUTES_OAUTH_TOKEN`; *comfy*: `COMFY_API_KEY`, `COMFY_CLOUD_API_KEY`; *elevenlabs*: `ELEVENLABS_API_KEY`, `XI_API_KEY`; *fal*: `FAL_API_KEY`, `FAL_KEY`; *fish-audio*: `FISH_API_KEY`, `FISH_AUDIO_API_KEY`; *google*: `GEMINI_API_KEY`, `GOOGLE_API_KEY`; *huggingface*: `HF_TOKEN`, `HUGGINGFACE_HUB_TOKEN`; *kimi*: `KIMICODE_API_KEY`, `KIMI_API_KEY`; *minimax*: `MINIMAX_API_KEY`, `MINIMAX_CODE_PLAN_KEY`, `MINIMAX_CODING_API_KEY`, `MINIMAX_OAUTH_TOKEN`; *openai*: `CODEX_ACCESS_TOKEN`, `CODEX_API_KEY`, `OPENAI_API_KEY`, `OPENAI_OAUTH_TOKEN`; *opencode*: `OPENCODE_API_KEY`, `OPENCODE_ZEN_API_KEY`; *runway*: `RUNWAYML_API_SECRET`, `RUNWAY_API_KEY`; *zai*: `ZAI_API_KEY`, `Z_AI_API_KEY`.
         *
         *     Scope: `org:agents:write`.
         *
         *     With the agent’s own tokens only where `BERTH_PLATFORM_TOKEN_SCOPE` is `workspace`.
         */
        post: operations["attachSecrets"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/secrets/{secretId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Detach a secret from an agent
         * @description Its running gateway keeps the value until the next restart.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["detachSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/skills": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the skills in the library
         * @description The newest first. Where there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page.
         *
         *     Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listSkills"];
        put?: never;
        /**
         * Add a skill to the library
         * @description The content is a folder with SKILL.md, whose front matter has `name` and `description`; at most 500 files and 8 MiB, without links. It is found on the public network, or on the private one where it is a file of this workspace. What is not here is pinned first, as by `POST /v3/files/public/pin_by_cid` and under its conditions (scope `org:files:write`): where that takes longer than 25 seconds the answer is 202 with the pin’s operation, and the request is to be repeated when it has ended. Berth keeps the content as long as the skill.
         *
         *     A CID that is in the library finds that skill, as it is. 409 where another skill has the name: it gets a version instead.
         *
         *     Scope: `org:agents:write`.
         */
        post: operations["addSkill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/skills/{skillId}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of a skill
         * @description The newest first: the one that agents get. The newest version is the highest release by Semantic Versioning: a lower one that is published later is not. Prereleases count if there is no release, and versions without a number if no version has one. Where there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page.
         *
         *     Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listSkillVersions"];
        put?: never;
        /**
         * Add a version to a skill
         * @description The content is a folder with SKILL.md, whose front matter has `name` and `description`; at most 500 files and 8 MiB, without links. It is found on the public network, or on the private one where it is a file of this workspace. What is not here is pinned first, as by `POST /v3/files/public/pin_by_cid` and under its conditions (scope `org:files:write`): where that takes longer than 25 seconds the answer is 202 with the pin’s operation, and the request is to be repeated when it has ended. Berth keeps the content as long as the skill.
         *
         *     The newest version is the highest release by Semantic Versioning: a lower one that is published later is not. Prereleases count if there is no release, and versions without a number if no version has one. Agents that have the skill get the newest version by an update. A CID that the skill has finds that version. 409 where the version’s number is taken, or the content is another skill’s.
         *
         *     Scope: `org:agents:write`.
         */
        post: operations["addSkillVersion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/skills/{skillId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a skill from the library
         * @description With all its versions; their content is released. 409 while an agent has it; `Error-Detail` names the agents. One that is not there is no error.
         *
         *     Scope: `org:agents:write`.
         */
        delete: operations["deleteSkill"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/skills": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the skills of an agent
         * @description By name. Beside these, every agent has `@berth/platform`, by which it speaks to Berth.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         *
         *     Also at `/v0/agents/{agentId}/platform/skills/attached`.
         */
        get: operations["listAgentSkills"];
        put?: never;
        /**
         * Attach skills to an agent
         * @description All of them or none. A slug of the hub that is not in the library is installed first, unless it is the agent that asks. The agent finds the folder below `skills`, and its engine sees it without a restart. An agent has at most 10: 400; what is not in the library: 404.
         *
         *     **Skill version conflict** (409): another version of the skill is attached, or the agent has a folder of that name which it made or changed. In the latter case the skill is attached, the folder stays, and `POST …/skills/{skillId}/update` with a `resolution` says what becomes of it. Conflicts of other skills are in `skillProblems` of the agent’s status.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["attachSkills"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/skills/{skillId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Detach a skill from an agent
         * @description Its folder goes, with what the agent changed in it; the library keeps the skill.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["detachSkill"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/skills/updates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List newer versions of the skills of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listSkillUpdates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/skills/{skillId}/update": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give an agent another version of a skill
         * @description Without a body the agent gets the newest version in the library, and never a lower one than it has. To go back, name an older one.
         *
         *     **Skill version conflict** (409): `expectedSkillCid` is not the version that is attached, or the agent has changed its folder, and `resolution` does not say what becomes of that. Nothing is changed then.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["updateSkill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/clawhub": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the skills of the hub
         * @description First those that ship with Berth and those of its operator, then, on further pages and in its own order, those of the hub that the operator has set. `nextCursor` goes into `cursor`; it is null on the last page.
         *
         *     Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listHub"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/clawhub/{slug}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a skill of the hub
         * @description Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         *
         *     Also at `/v0/clawhub/{+slug}`.
         */
        get: operations["getHubSkill"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/clawhub/{slug}/install": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Install a skill of the hub into the library
         * @description Its folder is put on the public network. A skill that is installed gets the hub’s version where it is a new one, and is answered as it is else; agents that have it get it by an update. 502 for one that is not safe to unpack.
         *
         *     Scope: `org:agents:write`.
         *
         *     A platform token that is good for the workspace will do.
         *
         *     Also at `/v0/clawhub/{+slug}/install`.
         */
        post: operations["installHubSkill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/gateway-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the gateway token of an agent
         * @description Its holder may do with the agent what a key with the scope can, but for this, its rotation, deleting the agent and attaching secrets to it.
         *
         *     Scope: `org:agents:write`.
         *
         *     Not with the agent’s own tokens.
         */
        get: operations["getGatewayToken"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/gateway-token/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace the gateway token of an agent
         * @description The old one, and platform tokens that the agent got by it, are 401 from now on, and what they had open is closed. The agent restarts; the answer does not wait for that, unless `Prefer` says so.
         *
         *     Scope: `org:agents:write`.
         *
         *     Not with the agent’s own tokens.
         */
        post: operations["rotateGatewayToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/platform/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get a platform token
         * @description For an hour it is a key for this agent; where the operator says so, it also sees the rest of the workspace. It ends with the gateway token.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["createPlatformToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/platform/whoami": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Tell which agent this is
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["whoami"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the end of an agent's log
         * @description The last 100 lines of the gateway, of the scripts and of the supervisor. They outlive restarts of the gateway and the sandbox, but not a supervisor that is killed. On the agent's own host, a WebSocket at `/v0/logs` sends them and then each new one: `{"timestamp", "level", "source", "message"}`.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readAgentLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/logs/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow an agent's log, as server-sent events
         * @description Events `line`: the last lines, then each new one. A reader that is too slow loses some, and is told how many. The stream ends when the sandbox does: open it again.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["followAgentLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List conversations
         * @description Those that were begun by these routes, the latest 200; the engine keeps them.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listConversations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations/{conversationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a conversation
         * @description Empty where nothing was said yet.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readConversation"];
        put?: never;
        post?: never;
        /**
         * Delete a conversation
         * @description Ends its reply, if one is under way.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["deleteConversation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations/{conversationId}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Say something to an agent, and follow its reply
         * @description The reply goes on when the client goes. Events: `text` (`{"item", "text", "replace"}`) is more of what the agent writes; `message` is one that is kept, as in the list of messages; `tool` (`{"call", "state"}`) says that a call of a tool is `running`, `done` or `failed`, before its result is kept; `end` comes last, with `state` `done`, `stopped` or `failed` (and `error`, the words of the engine, or of the provider of its model). `error` (`{"error"}`, the reason) where the stream ends before the reply: read the messages, and follow it anew. The stream lasts as long as the reply; comments keep a silent one open.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["sendMessage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations/{conversationId}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow the reply that is under way
         * @description Where the agent does not reply, `end` comes at once, with `state` `idle`. Events: `text` (`{"item", "text", "replace"}`) is more of what the agent writes; `message` is one that is kept, as in the list of messages; `tool` (`{"call", "state"}`) says that a call of a tool is `running`, `done` or `failed`, before its result is kept; `end` comes last, with `state` `done`, `stopped` or `failed` (and `error`, the words of the engine, or of the provider of its model). `error` (`{"error"}`, the reason) where the stream ends before the reply: read the messages, and follow it anew. The stream lasts as long as the reply; comments keep a silent one open.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["followConversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/conversations/{conversationId}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop the reply that is under way
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["stopReply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/console/exec": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command in an agent
         * @description A shell runs it as the agent, with its environment. An exit code other than 0 is a result like any other. It is killed when it runs for too long, and when the client goes before its end. What it leaves in the background is killed with it, `nohup … &` included; `setsid … &` goes on.
         *
         *     With `Accept: text/event-stream` its output comes while it runs: events `stdout` and `stderr` (`{"text"}`), and at the end `exit` (`{"exitCode", "truncated", "timedOut", "timestamp"}`), or `error` where the end is not known.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["execCommand"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a file
         * @description Its bytes as they are. The type is that of its name; a browser stores it, and would run nothing of it. `ETag` has its version. A folder is listed at `/files/list`.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readAgentFile"];
        /**
         * Write a file
         * @description The body is its content, of at most `BERTH_AGENT_UPLOAD_BYTES`. It takes the place of what is there, whole or not at all; missing folders are made. With `If-Match: <ETag>` only where that is still its version, with `If-None-Match: *` only where there is none: else 412.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["writeAgentFile"];
        post?: never;
        /**
         * Delete a file or a folder
         * @description A folder with all that is in it. The snapshots that have it keep it.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["deleteAgentFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/files/list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a folder
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listAgentFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/files/upload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload a file
         * @description It goes into `uploads` of the workspace, in place of one of the same name, whole or not at all.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["uploadAgentFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/git/info/refs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What `git clone`, `git fetch` and `git push` ask first
         * @description `git clone https://x:<gateway token>@<this host>/v0/agents/<agentId>.git`. A push also needs `org:agents:write`.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Also at `/v0/agents/{agentId}.git/info/refs`.
         */
        get: operations["gitRefs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/git/git-upload-pack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send what a clone or a fetch lacks
         * @description Used by git itself.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Also at `/v0/agents/{agentId}.git/git-upload-pack`.
         */
        post: operations["gitUploadPack"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/git/git-receive-pack": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take a push to `main`
         * @description Used by git itself. What the agent has changed is committed first; a push that does not build on that is refused, and so is one with a `manifest.json` that is not valid. After it the manifest is applied, then `build` and `start` run: an operation `agent.push`.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Also at `/v0/agents/{agentId}.git/git-receive-pack`.
         */
        post: operations["gitReceivePack"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schemas/manifest.v1.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The JSON Schema of manifest.json
         * @description A push is held against it. Beside it, no two entries of a list may have one name, path or CID.
         */
        get: operations["manifestSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the engine's config
         * @description As text. Secrets in it are redacted; written back, they stay what they were. `ETag` has its version.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readConfig"];
        /**
         * Write the engine's config
         * @description In place of what is there, once the engine finds it valid; it stays through restarts. Keys that belong to the operator are set again whatever it says. With `If-Match: <ETag>` only if that is still its version: else 412. Comments of JSON5 are not kept.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["writeConfig"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/config/operator-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the keys of the config that belong to the operator
         * @description They are set again at each start, and writing the config with another value of one is refused.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listOperatorKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/config/schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a place of the config's schema
         * @description What the engine says of a key and of the keys right below it, with those of its plugins.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["readConfigSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/config/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask the engine whether a config is valid
         * @description Without a config: the one that is there.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["validateConfig"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/channels": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List channels
         * @description Null for one that is not configured. Tokens are never shown, but for the end of each.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listChannels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/channels/{channel}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Configure a channel
         * @description `telegram`, `slack`, `discord` or `whatsapp`. What is left out stays as it is, tokens included. The gateway is restarted with it; the channel stays configured where that fails. A token for Telegram is refused where Telegram can be asked and says no. 409 for a token that another agent has.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["configureChannel"];
        /**
         * Remove a channel
         * @description With its tokens. The gateway is restarted without it; it is gone also where that fails.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["removeChannel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List devices
         * @description A client that shows a key of its own is a device, and waits to be approved. Who has only the gateway token is none.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listDevices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/devices/approve-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve every device that waits
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["approveAllDevices"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/devices/{requestId}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a device
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["approveDevice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List tasks
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listTasks"];
        put?: never;
        /**
         * Create a task
         * @description An agent has at most 20.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["createTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks/{jobId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a task
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["getTask"];
        /**
         * Change a task
         * @description What is left out stays as it is.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["updateTask"];
        post?: never;
        /**
         * Delete a task
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["deleteTask"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks/{jobId}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a task now
         * @description In the background, whatever its schedule says; `/runs` has the result.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["runTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks/{jobId}/toggle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Switch a task on or off
         * @description Without a body: the other way round.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["toggleTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/tasks/{jobId}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the runs of a task
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listTaskRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List templates
         * @description Those that ship with Berth, then the workspace’s own, by slug; the templates of other workspaces are not seen. Where there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page. `featured` are those that ship with Berth; `submittedBy=me` are those that the caller made.
         *
         *     Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listTemplates"];
        put?: never;
        /**
         * Make a template of an agent’s snapshot, or of a public repository
         * @description Of a snapshot (`agentId`), or of the newest commit of a branch (`gitUrl`). It has `manifest.json`, `README.md` and `workspace/`; the manifest says what the body does not: its `template` has slug, category and tags, its `agent` name and description. Agents of this workspace can be made from the template at once. Its files are those of the snapshot, all of them: what nobody else in the workspace shall see is to be removed first.
         *
         *     A repository is read while the client waits, for at most a minute: one commit, without its history, submodules and LFS; at most 1000 files and 32 MiB, and no link that leads out of it. It has to be public, on https, and on the internet; 400 says why one cannot be read, 502 and 504 that its server failed or was too slow, 429 that too many are being read.
         *
         *     400 `Validation failed: …` has the first fault, and `Error-Detail` all of them. A slug is taken within the workspace: 409 where a template of its own, or one that ships with Berth, has it.
         *
         *     Scope: `org:agents:write`.
         *
         *     A platform token that is good for the workspace will do.
         */
        post: operations["createTemplate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/public-templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List what ships with Berth, without a key */
        get: operations["listPublicTemplates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/{templateId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a template by its slug
         * @description Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["getTemplate"];
        /**
         * Change a template, or give it new files
         * @description With `agentId` (and `snapshotCid`) its files become those of that snapshot, with `gitUrl`, `branch`, `ref` or `path` those of that repository, where what is not given stays as it was. An empty body reads the repository again that the template is of. `version` grows with each; agents that are there already stay as they are. 403 for templates that ship with Berth.
         *
         *     Scope: `org:agents:write`.
         */
        put: operations["updateTemplate"];
        post?: never;
        /**
         * Archive a template
         * @description It is found no more, and its slug is free; agents that were made from it go on. It may be submitted again. 403 for templates that ship with Berth.
         *
         *     Scope: `org:agents:write`.
         */
        delete: operations["archiveTemplate"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/id/{templateId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a template by its id
         * @description Scope: `org:agents:read`.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["getTemplateById"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check whether a snapshot or a public repository can be a template
         * @description `errors` has all that keeps it from being one. A repository is read while the client waits, for at most a minute: one commit, without its history, submodules and LFS; at most 1000 files and 32 MiB, and no link that leads out of it. It has to be public, on https, and on the internet; 400 says why one cannot be read, 502 and 504 that its server failed or was too slow, 429 that too many are being read.
         *
         *     Scope: `org:agents:read`.
         */
        post: operations["validateTemplate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/branches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List the branches of a public repository
         * @description Scope: `org:agents:read`.
         */
        post: operations["listTemplateBranches"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/templates/refs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List the branches and tags of a public repository
         * @description Scope: `org:agents:read`.
         */
        post: operations["listTemplateRefs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the snapshots of an agent
         * @description The newest first. Where there are more than `limit`, the `Next-Page-Token` header has the `pageToken` of the next page. A reset adds the snapshot to which it went once more: the first one is how the workspace is.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listSnapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/snapshots/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare two snapshots of an agent
         * @description What is other in `to` than in `from`, whichever is the older one. The agent compares them in its repository, so it has to run; 409 where that does not have one of them any more, as behind a restore.
         *
         *     Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["compareSnapshots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/snapshots/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Ask whether snapshots are taken, and when the last one was
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["getSyncStatus"];
        put?: never;
        /**
         * Save the workspace of an agent as a snapshot now
         * @description Commits what has changed, and pins the tree of the commit on IPFS. `leftOut` lists what is not in it: files that `.gitignore` excludes, that have the name or the content of a key or the value of a secret, or that git cannot keep. A line with the exact path of a file in `.gitignore`, such as `!/workspace/tests/key.pem`, lets in a file that only looks like a key. If nothing has changed there is no new snapshot. 503 if IPFS or the agent cannot be reached.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["syncAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/snapshots/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Put a snapshot in the place of the workspace of an agent
         * @description Only one of its own history. What the workspace is now is saved as a snapshot first; what is ignored stays. Then `build` and `start` run; the gateway goes on. 503 where IPFS or the agent cannot be reached.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["resetAgent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/port-forwarding": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List path routes
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listPortForwarding"];
        /**
         * Replace all path routes
         * @description At most 10. A path below `pathPrefix` of the agent’s own host goes to `port`, without the prefix, which is in `X-Forwarded-Prefix`; of several prefixes the longest counts. Since that host answers the API as well, what comes from a port runs in a sandbox there, and sets no cookies; a browser that opens a page is led to `<agentId>.<BERTH_APP_DOMAIN>`, which has the same routes and nothing else. `protected`: only with the gateway token, in a header, `?token=` or a cookie.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["setPortForwarding"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/domains": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the domains of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     A platform token that is good for the workspace will do.
         */
        get: operations["listDomains"];
        put?: never;
        /**
         * Add a domain to an agent
         * @description Exactly one of `subdomain` and `customDomain`, at most 5 for each agent. Whole paths go to `targetPort`, WebSockets as well.
         *
         *     A subdomain is there at once; 409 when it is taken, or was by another workspace. A custom domain is `pending_ownership` until its TXT record (`txtName`, `txtValue`) is seen: at once when it is there already, otherwise with `verifyDomain`, or by itself within a while, which gets longer, for two weeks. Who proves a name first has it: 409 for it from then on. A name must not contain or look like the names of the service, nor be one of its hosts. Custom domains are not part of the free plan.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["addDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/domains/challenge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get the TXT record that proves a custom domain
         * @description The same for all agents of the workspace, and at any time: it can be set before the domain is added.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["getDomainChallenge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/domains/{domainId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Change where a domain leads
         * @description Its name stays: delete it and add another. What is open by the old way is closed.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        put: operations["updateDomain"];
        post?: never;
        /**
         * Delete a domain
         * @description What is open by it is closed. A subdomain stays the workspace’s, whose agents may take it again; a custom domain is free for others.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        delete: operations["deleteDomain"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/domains/{domainId}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Look for the TXT record of a custom domain now
         * @description 409 when another one has proven it before, 503 when no DNS server answers; then it stays pending.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["verifyDomain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/issues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Closed beta
         * @description Not open to any account: Berth has no issues.
         *
         *     Any key will do.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        get: operations["getIssues"];
        /**
         * Closed beta
         * @description Not open to any account: Berth has no issues.
         *
         *     Any key will do.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        put: operations["putIssues"];
        /**
         * Closed beta
         * @description Not open to any account: Berth has no issues.
         *
         *     Any key will do.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        post: operations["postIssues"];
        /**
         * Closed beta
         * @description Not open to any account: Berth has no issues.
         *
         *     Any key will do.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        delete: operations["deleteIssues"];
        options?: never;
        head?: never;
        /**
         * Closed beta
         * @description Not open to any account: Berth has no issues.
         *
         *     Any key will do.
         *
         *     The agent’s own gateway token will do as well, for what is that agent’s.
         *
         *     Also at `/v0/issues/{+issue}`.
         */
        patch: operations["patchIssues"];
        trace?: never;
    };
    "/v0/agents/{agentId}/openai/v1/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Chat with an agent as OpenAI clients do
         * @description The base URL of a client is `…/v0/agents/{agentId}/openai/v1`, and its API key the gateway token of the agent or an API key of Berth. The engine’s own errors have OpenAI’s form: `{"error": {"message", "type"}}`.
         *
         *     Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["createChatCompletion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/openai/v1/responses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Chat with an agent by the Responses API of OpenAI
         * @description Scope: `org:agents:write`.
         *
         *     The agent’s own gateway token will do as well.
         */
        post: operations["createResponse"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/openai/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the models of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/agents/{agentId}/openai/v1/models/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a model of an agent
         * @description Scope: `org:agents:read`.
         *
         *     The agent’s own gateway token will do as well.
         *
         *     Also at `/v0/agents/{agentId}/openai/v1/models/{+model}`.
         */
        get: operations["readModel"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v0/ipfs/node": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who and where the IPFS node of the public network is
         * @description Connect your own node to one of `addresses`, and Berth finds what you ask it to pin at once.
         *
         *     Scope: `org:files:read`.
         */
        get: operations["getIpfsNode"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether this process is alive */
        get: operations["live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether Berth can work, part by part
         * @description 503 while `database`, `queue` or `schema` is down. Other parts that are away are shown as `down`, and delay work without losing it. What agents run in is `docker`, `kubernetes` or `processes`, as the workers that serve agents see it.
         */
        get: operations["ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This API as an OpenAPI 3.1 document */
        get: operations["openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This API as a page for people */
        get: operations["docs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Leads to the page */
        get: operations["root"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Error: {
            /** @description For people. */
            error: string;
        };
        PinningServiceError: {
            error: {
                /** @description For machines. */
                reason: string;
                /** @description For people. */
                details: string;
            };
        };
    };
    responses: {
        /** @description Something is missing or malformed; the message names the field. */
        400: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description No API key, or one that is unknown, expired, revoked or without a user. */
        401: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The key lacks the scope, its user the role, or its workspace the plan. */
        403: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description There is no such thing in this workspace. */
        404: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body did not come in time. */
        408: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description It is in a state that does not allow this, or the name is taken. */
        409: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description It was there, and is not any more. */
        410: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `If-Match` or `If-None-Match` fails, or the client speaks another version of tus than 1.0.0. */
        412: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is too large. */
        413: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is of a type, or in an encoding or a charset, that Berth does not read here. */
        415: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The Idempotency-Key belongs to another request. */
        422: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Something else is at work on it. */
        423: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too many requests in a minute, or too much work under way at a time. */
        429: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The address or the headers are larger than 16 KiB. There is no body. */
        431: {
            headers: {
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description A fault of Berth; the log has the cause. */
        500: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description An agent, or a server elsewhere, sent what is no answer. */
        502: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description A part that the answer needs is away, or has no room on its disk. Nothing that was accepted is lost. */
        503: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description An agent, or a server elsewhere, did not answer in time. */
        504: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description A disk is down to its reserve: nothing new is taken until there is room; what is there is served, and can be deleted. */
        507: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                "Error-Detail": components["headers"]["Error-Detail"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Any failure under `/psa`: `reason` is the `Error-Code` in capitals. */
        PinningService: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Error-Code": components["headers"]["Error-Code"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": {
                 *         "reason": "NOT_FOUND",
                 *         "details": "There is no such pin request"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PinningServiceError"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /**
         * @description The error in a word, for machines.
         * @example bad_request
         */
        "Error-Code": string;
        /**
         * @description What is wrong in particular, where the message itself is fixed.
         * @example exit code 78
         */
        "Error-Detail": string;
        /**
         * @description Where to follow the operation.
         * @example /v0/operations/0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41
         */
        Location: string;
        /**
         * @description The operation that this request started, or found.
         * @example 0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41
         */
        "Operation-Id": string;
        /**
         * @description Requests a minute that the plan allows the key, or its workspace where that is nearer to its limit; absent where the plan has none.
         * @example 250
         */
        "RateLimit-Limit": number;
        /**
         * @description Requests that are left in this minute.
         * @example 249
         */
        "RateLimit-Remaining": number;
        /**
         * @description Seconds until the count starts again.
         * @example 60
         */
        "RateLimit-Reset": number;
        /**
         * @description Seconds after which to try again.
         * @example 5
         */
        "Retry-After": number;
        /**
         * @description How to authenticate.
         * @example Bearer
         */
        "WWW-Authenticate": string;
        /**
         * @description Finds this request in the log.
         * @example f2c9b1d04a6e47d38a55c0e19b7d6a01
         */
        "X-Request-Id": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    streamEvents: {
        parameters: {
            query?: {
                /** @description Only events of these types, comma separated; `file.*` is all of files. */
                type?: string[];
                /** @description Only events of this resource; `agent:<id>` has those of what belongs to the agent as well. */
                resource?: string;
                /** @description As `Last-Event-ID`, for clients that cannot send it. */
                after?: number;
                /** @description First what was published from this time on, as far as it is kept. `Last-Event-ID` and `after` win over it. */
                from?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, each under the name of its type. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example id: 1816211578880122
                     *
                     *     event: group.created
                     *     id: 1816211578880123
                     *     data: {"id":"1816211578880123","type":"group.created","createdAt":"2026-11-21T10:58:03.485Z","workspaceId":"0193a1be-77a0-7c3e-9d14-0c5b8a6f2e31","resource":{"type":"group","id":"0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15"},"data":{"network":"public","name":"Catalogues","isPublic":false}}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            410: components["responses"]["410"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listPinByCid: {
        parameters: {
            query?: {
                /** @description Only requests in this status. */
                status?: "prechecking" | "backfilled" | "searching" | "retrieving" | "expired" | "over_free_limit" | "over_max_size" | "invalid_object" | "bad_host_node";
                /** @description Only this CID, however it is spelled. */
                cid?: string;
                /** @description `ASC` or `DESC` by age; newest first unless told. */
                order?: "ASC" | "DESC";
                /** @description The same as `order`. */
                sort?: "ASC" | "DESC";
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
                /** @description Adds `count`, the number of all that match. */
                includesCount?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of pin records. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "jobs": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "name": "Spring catalogue",
                     *             "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "keyvalues": {
                     *               "season": "spring"
                     *             },
                     *             "group_id": null,
                     *             "status": "retrieving",
                     *             "date_queued": "2026-11-21T10:58:03.485934Z",
                     *             "hose_nodes": [],
                     *             "host_nodes": []
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            jobs: {
                                id: string;
                                name: string | null;
                                cid: string;
                                keyvalues: {
                                    [key: string]: string;
                                };
                                group_id: string | null;
                                /** @enum {string} */
                                status: "prechecking" | "backfilled" | "searching" | "retrieving" | "expired" | "over_free_limit" | "over_max_size" | "invalid_object" | "bad_host_node" | "pinned";
                                date_queued: string;
                                hose_nodes: string[];
                                host_nodes: string[];
                            }[];
                            count?: number;
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    pinByCid: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "name": "Spring catalogue",
                 *       "keyvalues": {
                 *         "season": "spring"
                 *       }
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to pin: any version, any multibase.
                     */
                    cid: string;
                    /** @description A name for the file. */
                    name?: string | null;
                    /** @description The group to place the file in. */
                    group_id?: string | null;
                    /** @description Metadata: at most 10 pairs of strings. */
                    keyvalues?: {
                        [key: string]: string;
                    } | null;
                    /** @description Where the content can be had: peer ids, or multiaddrs that end in /p2p/<peer id>. */
                    host_nodes?: string[] | null;
                };
            };
        };
        responses: {
            /** @description The pin record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Spring catalogue",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "status": "prechecking",
                     *         "date_queued": "2026-11-21T10:58:03.485934Z",
                     *         "hose_nodes": [],
                     *         "host_nodes": []
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            /** @enum {string} */
                            status: "prechecking" | "backfilled" | "searching" | "retrieving" | "expired" | "over_free_limit" | "over_max_size" | "invalid_object" | "bad_host_node" | "pinned";
                            date_queued: string;
                            hose_nodes: string[];
                            host_nodes: string[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    cancelPinByCid: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Withdrawn. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    retryPinByCid: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The pin record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Spring catalogue",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "status": "prechecking",
                     *         "date_queued": "2026-11-21T10:58:03.485934Z",
                     *         "hose_nodes": [],
                     *         "host_nodes": []
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            /** @enum {string} */
                            status: "prechecking" | "backfilled" | "searching" | "retrieving" | "expired" | "over_free_limit" | "over_max_size" | "invalid_object" | "bad_host_node" | "pinned";
                            date_queued: string;
                            hose_nodes: string[];
                            host_nodes: string[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    psaListPins: {
        parameters: {
            query?: {
                /** @description Only these CIDs, at most 10, separated by commas, however they are spelled. */
                cid?: string;
                /** @description Only pins of this name. */
                name?: string;
                /** @description How `name` is compared: as a whole or as a part, with or without (`i`) regard to case. */
                match?: "exact" | "iexact" | "partial" | "ipartial";
                /** @description Only pins in these statuses, separated by commas. Unless told, only `pinned` ones; with `name`, also those that are queued or being pinned. */
                status?: string;
                /** @description Only pins created before this; `created` of the last one leads to the next page. */
                before?: string;
                /** @description Only pins created after this. */
                after?: string;
                /** @description How many items a page has. */
                limit?: number;
                /** @description Metadata as a JSON object; all pairs must match. */
                meta?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of pins. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "count": 1,
                     *       "results": [
                     *         {
                     *           "requestid": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "status": "pinning",
                     *           "created": "2026-11-21T10:58:03.435Z",
                     *           "pin": {
                     *             "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "name": "Spring catalogue",
                     *             "origins": [
                     *               "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *             ],
                     *             "meta": {
                     *               "season": "spring"
                     *             }
                     *           },
                     *           "delegates": [
                     *             "/ip4/198.51.100.4/tcp/4001/p2p/12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV"
                     *           ],
                     *           "info": {
                     *             "status_details": "retrieving: 112 blocks, 29360128 bytes"
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description How many match in all, on this page and behind it. */
                        count: number;
                        results: {
                            /** @description The id of the file. */
                            requestid: string;
                            /** @enum {string} */
                            status: "queued" | "pinning" | "pinned" | "failed";
                            /** @description When it was asked for, in milliseconds. Lists are ordered and continued by it. */
                            created: string;
                            pin: {
                                cid: string;
                                name?: string;
                                origins: string[];
                                meta: {
                                    [key: string]: string;
                                };
                            };
                            /** @description Addresses of the IPFS node, to connect to; none while it cannot be dialled. */
                            delegates: string[];
                            /** @description `status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`. */
                            info: {
                                [key: string]: string;
                            };
                        }[];
                    };
                };
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
        };
    };
    psaAddPin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "name": "Spring catalogue",
                 *       "origins": [
                 *         "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                 *       ],
                 *       "meta": {
                 *         "season": "spring"
                 *       }
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to pin: any version, any multibase.
                     */
                    cid: string;
                    /** @description A name, to find it by. */
                    name?: string | null;
                    /** @description Multiaddrs of nodes that have the content. The first 20 that can be dialled are kept, the others passed over. */
                    origins?: string[] | null;
                    /** @description Metadata: at most 10 pairs of strings. */
                    meta?: {
                        [key: string]: string;
                    } | null;
                };
            };
        };
        responses: {
            /** @description The pin. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "requestid": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "status": "pinning",
                     *       "created": "2026-11-21T10:58:03.435Z",
                     *       "pin": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "name": "Spring catalogue",
                     *         "origins": [
                     *           "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *         ],
                     *         "meta": {
                     *           "season": "spring"
                     *         }
                     *       },
                     *       "delegates": [
                     *         "/ip4/198.51.100.4/tcp/4001/p2p/12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV"
                     *       ],
                     *       "info": {
                     *         "status_details": "retrieving: 112 blocks, 29360128 bytes"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @description The id of the file. */
                        requestid: string;
                        /** @enum {string} */
                        status: "queued" | "pinning" | "pinned" | "failed";
                        /** @description When it was asked for, in milliseconds. Lists are ordered and continued by it. */
                        created: string;
                        pin: {
                            cid: string;
                            name?: string;
                            origins: string[];
                            meta: {
                                [key: string]: string;
                            };
                        };
                        /** @description Addresses of the IPFS node, to connect to; none while it cannot be dialled. */
                        delegates: string[];
                        /** @description `status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`. */
                        info: {
                            [key: string]: string;
                        };
                    };
                };
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            408: components["responses"]["PinningService"];
            409: components["responses"]["PinningService"];
            413: components["responses"]["PinningService"];
            415: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
            507: components["responses"]["PinningService"];
        };
    };
    psaGetPin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the pin request, a UUID. */
                requestid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The pin. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "requestid": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "status": "pinning",
                     *       "created": "2026-11-21T10:58:03.435Z",
                     *       "pin": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "name": "Spring catalogue",
                     *         "origins": [
                     *           "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *         ],
                     *         "meta": {
                     *           "season": "spring"
                     *         }
                     *       },
                     *       "delegates": [
                     *         "/ip4/198.51.100.4/tcp/4001/p2p/12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV"
                     *       ],
                     *       "info": {
                     *         "status_details": "retrieving: 112 blocks, 29360128 bytes"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @description The id of the file. */
                        requestid: string;
                        /** @enum {string} */
                        status: "queued" | "pinning" | "pinned" | "failed";
                        /** @description When it was asked for, in milliseconds. Lists are ordered and continued by it. */
                        created: string;
                        pin: {
                            cid: string;
                            name?: string;
                            origins: string[];
                            meta: {
                                [key: string]: string;
                            };
                        };
                        /** @description Addresses of the IPFS node, to connect to; none while it cannot be dialled. */
                        delegates: string[];
                        /** @description `status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`. */
                        info: {
                            [key: string]: string;
                        };
                    };
                };
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            404: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
        };
    };
    psaReplacePin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the pin request, a UUID. */
                requestid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "name": "Spring catalogue",
                 *       "origins": [
                 *         "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                 *       ],
                 *       "meta": {
                 *         "season": "spring"
                 *       }
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to pin: any version, any multibase.
                     */
                    cid: string;
                    /** @description A name, to find it by. */
                    name?: string | null;
                    /** @description Multiaddrs of nodes that have the content. The first 20 that can be dialled are kept, the others passed over. */
                    origins?: string[] | null;
                    /** @description Metadata: at most 10 pairs of strings. */
                    meta?: {
                        [key: string]: string;
                    } | null;
                };
            };
        };
        responses: {
            /** @description The new pin. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "requestid": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "status": "pinning",
                     *       "created": "2026-11-21T10:58:03.435Z",
                     *       "pin": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "name": "Spring catalogue",
                     *         "origins": [
                     *           "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *         ],
                     *         "meta": {
                     *           "season": "spring"
                     *         }
                     *       },
                     *       "delegates": [
                     *         "/ip4/198.51.100.4/tcp/4001/p2p/12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV"
                     *       ],
                     *       "info": {
                     *         "status_details": "retrieving: 112 blocks, 29360128 bytes"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @description The id of the file. */
                        requestid: string;
                        /** @enum {string} */
                        status: "queued" | "pinning" | "pinned" | "failed";
                        /** @description When it was asked for, in milliseconds. Lists are ordered and continued by it. */
                        created: string;
                        pin: {
                            cid: string;
                            name?: string;
                            origins: string[];
                            meta: {
                                [key: string]: string;
                            };
                        };
                        /** @description Addresses of the IPFS node, to connect to; none while it cannot be dialled. */
                        delegates: string[];
                        /** @description `status_details` until it is pinned, then `raw_size`, the bytes of the content, and `pinned_until`. */
                        info: {
                            [key: string]: string;
                        };
                    };
                };
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            404: components["responses"]["PinningService"];
            408: components["responses"]["PinningService"];
            409: components["responses"]["PinningService"];
            413: components["responses"]["PinningService"];
            415: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
            507: components["responses"]["PinningService"];
        };
    };
    psaRemovePin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the pin request, a UUID. */
                requestid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["PinningService"];
            401: components["responses"]["PinningService"];
            403: components["responses"]["PinningService"];
            404: components["responses"]["PinningService"];
            429: components["responses"]["PinningService"];
            431: components["responses"]["PinningService"];
            500: components["responses"]["PinningService"];
            503: components["responses"]["PinningService"];
        };
    };
    uploadFile: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "file": "<the bytes of logo.png>",
                 *       "network": "public",
                 *       "keyvalues": "{\"season\":\"spring\"}"
                 *     }
                 */
                "multipart/form-data": {
                    /** @description The file; or several, with paths for file names, which make a folder. If all of them are in one folder, the upload is that folder. */
                    file: string | string[];
                    /**
                     * @description `private` if left out.
                     * @default private
                     * @enum {string}
                     */
                    network?: "public" | "private";
                    /** @description If left out, the name of the file or the folder. */
                    name?: string;
                    /** Format: uuid */
                    group_id?: string;
                    /**
                     * Format: uuid
                     * @description The same as `group_id`.
                     */
                    group?: string;
                    /**
                     * Format: json-pairs
                     * @description Metadata: a JSON object of strings, at most ten pairs.
                     */
                    keyvalues?: string;
                    /**
                     * @description `true`: the file is a CAR, and the upload is the DAG of its one root.
                     * @enum {string}
                     */
                    car?: "true" | "false";
                    /**
                     * @description `v1` if left out.
                     * @enum {string}
                     */
                    cid_version?: "0" | "1" | "v0" | "v1";
                    /**
                     * Format: unix-time
                     * @description Unix time in seconds, when the file is to be deleted; never, if left out.
                     */
                    expires_at?: string;
                    /**
                     * @description Accepted; every file can be streamed.
                     * @enum {string}
                     */
                    streamable?: "true" | "false";
                };
            };
        };
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "logo.png",
                     *         "cid": "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e",
                     *         "size": 17408,
                     *         "number_of_files": 1,
                     *         "mime_type": "image/png",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "created_at": "2026-11-21T10:58:03.485934Z",
                     *         "expires_at": null,
                     *         "vectorized": false,
                     *         "network": "public",
                     *         "is_duplicate": false,
                     *         "user_id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            /** @description Bytes of the content. */
                            size: number;
                            number_of_files: number;
                            mime_type: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            created_at: string;
                            /** @description When it is to be deleted, a Unix time in seconds; null for never. */
                            expires_at: number | null;
                            /** @constant */
                            vectorized: false;
                            /** @enum {string} */
                            network: "public" | "private";
                            /** @description Whether the workspace had this content already, until `expires_at` or longer; then this is the file that it had. Only its `mime_type` changes, if this upload declares a better one. */
                            is_duplicate: boolean;
                            user_id: string;
                        };
                    };
                };
            };
            /** @description `Location` is where to send the bytes. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    resumableUploadOptions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description `Tus-Version`, `Tus-Extension`, and the headers of CORS. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    pinFileToIPFS: {
        parameters: {
            query?: {
                /** @description `public` if left out, and the form has none. */
                network?: "public" | "private";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "file": [
                 *         "<the bytes of catalogue/1.png>",
                 *         "<the bytes of catalogue/2.png>"
                 *       ],
                 *       "pinataMetadata": "{\"name\":\"Spring catalogue\",\"keyvalues\":{\"season\":\"spring\"}}",
                 *       "pinataOptions": "{\"cidVersion\":1}"
                 *     }
                 */
                "multipart/form-data": {
                    /** @description The file; or several, with paths for file names, which make a folder. If all of them are in one folder, the upload is that folder. */
                    file: string | string[];
                    /**
                     * @description `public` if left out.
                     * @enum {string}
                     */
                    network?: "public" | "private";
                    /**
                     * Format: json-metadata
                     * @description JSON: `{"name": …, "keyvalues": {…}}`.
                     */
                    pinataMetadata?: string;
                    /**
                     * Format: json-options
                     * @description JSON: `{"groupId": …, "cidVersion": 0 or 1, "wrapWithDirectory": true or false}`.
                     */
                    pinataOptions?: string;
                };
            };
        };
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ID": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "Name": "Spring catalogue",
                     *       "IpfsHash": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "PinSize": 91402,
                     *       "Timestamp": "2026-11-21T10:58:03.485934Z",
                     *       "NumberOfFiles": 2,
                     *       "MimeType": "directory",
                     *       "GroupId": null,
                     *       "Keyvalues": {
                     *         "season": "spring"
                     *       },
                     *       "isDuplicate": false
                     *     }
                     */
                    "application/json": {
                        ID: string;
                        Name: string | null;
                        IpfsHash: string;
                        /** @description Bytes of the content. */
                        PinSize: number;
                        Timestamp: string;
                        NumberOfFiles: number;
                        MimeType: string;
                        GroupId: string | null;
                        Keyvalues: {
                            [key: string]: string;
                        };
                        isDuplicate: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    pinJSONToIPFS: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "pinataContent": {
                 *         "name": "Token 1",
                 *         "image": "ipfs://bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
                 *       },
                 *       "pinataMetadata": {
                 *         "name": "token 1",
                 *         "keyvalues": {
                 *           "season": "spring"
                 *         }
                 *       },
                 *       "pinataOptions": {
                 *         "cidVersion": 1
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description Any JSON. */
                    pinataContent?: unknown;
                    pinataMetadata?: {
                        name?: string | null;
                        keyvalues?: {
                            [key: string]: string;
                        } | null;
                    } | null;
                    pinataOptions?: {
                        groupId?: string | null;
                        cidVersion?: ((0 | 1) | ("0" | "1")) | null;
                        /** @description The upload becomes the entry of a directory, and `IpfsHash` is that of the directory. */
                        wrapWithDirectory?: boolean | null;
                        /** @description Accepted, without effect: Berth keeps one copy. */
                        customPinPolicy?: unknown;
                    } | null;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ID": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "Name": "token 1",
                     *       "IpfsHash": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *       "PinSize": 104,
                     *       "Timestamp": "2026-11-21T10:58:03.485934Z",
                     *       "NumberOfFiles": 1,
                     *       "MimeType": "application/json",
                     *       "GroupId": null,
                     *       "Keyvalues": {
                     *         "season": "spring"
                     *       },
                     *       "isDuplicate": false
                     *     }
                     */
                    "application/json": {
                        ID: string;
                        Name: string | null;
                        IpfsHash: string;
                        /** @description Bytes of the content. */
                        PinSize: number;
                        Timestamp: string;
                        NumberOfFiles: number;
                        MimeType: string;
                        GroupId: string | null;
                        Keyvalues: {
                            [key: string]: string;
                        };
                        isDuplicate: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    signUpload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "expires": 60,
                 *       "network": "public",
                 *       "max_file_size": 5000000,
                 *       "allow_mime_types": [
                 *         "image/*"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description From when it is good, in seconds of Unix time; now, if left out. */
                    date?: number;
                    /** @description For how many seconds from `date` it is good. */
                    expires: number;
                    /**
                     * Format: private-file
                     * @description A private file's address: `https://<gateway>/files/<cid>`, and what a gateway takes after it.
                     */
                    url?: string;
                    /**
                     * @description What the link is good for.
                     * @constant
                     */
                    method?: "GET";
                    /**
                     * @description The network of every file that is uploaded by the URL.
                     * @default private
                     * @enum {string}
                     */
                    network?: "public" | "private";
                    /** @description Most bytes of an upload. */
                    max_file_size?: number | null;
                    /** @description The types that may be uploaded, wildcards included; `directory` for folders. */
                    allow_mime_types?: string[] | null;
                    /** @description The group of what is uploaded; if left out, the upload may name one. */
                    group_id?: string | null;
                    /** @description The name of what is uploaded, whatever the upload says. */
                    filename?: string | null;
                    /** @description Metadata of what is uploaded, whatever the upload says. */
                    keyvalues?: {
                        [key: string]: string;
                    } | null;
                    /** @description Accepted; every file can be streamed. */
                    streamable?: boolean;
                };
            };
        };
        responses: {
            /** @description The signed URL. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": "https://berth.example/v3/files/0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7?X-Algorithm=PINATA2&X-Date=1795258683&X-Expires=60&X-Method=%5B%22HEAD%22%2C%22PATCH%22%2C%22POST%22%5D&X-User-ID=0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60&X-Signature=…"
                     *     }
                     */
                    "application/json": {
                        /** @description The signed URL. */
                        data: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    signDownload: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://catalogues.gateway.localhost/files/bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "expires": 60,
                 *       "method": "GET"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: private-file
                     * @description A private file's address: `https://<gateway>/files/<cid>`, and what a gateway takes after it.
                     */
                    url: string;
                    /** @description From when it is good, in seconds of Unix time; now, if left out. */
                    date?: number;
                    /** @description For how many seconds from `date` it is good. */
                    expires: number;
                    /**
                     * @description What the link is good for.
                     * @constant
                     */
                    method: "GET";
                };
            };
        };
        responses: {
            /** @description The signed URL. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": "https://catalogues.gateway.localhost/files/bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi?X-Algorithm=PINATA1&X-Date=1795258683&X-Expires=60&X-Method=GET&X-Signature=…"
                     *     }
                     */
                    "application/json": {
                        /** @description The signed URL. */
                        data: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    linkToFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signed URL. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": "https://catalogues.gateway.localhost/files/bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi?X-Algorithm=PINATA1&X-Date=1795258683&X-Expires=900&X-Method=GET&X-Signature=…"
                     *     }
                     */
                    "application/json": {
                        /** @description The signed URL. */
                        data: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listFiles: {
        parameters: {
            query?: {
                /** @description Part of the name, in any case. One without three letters or digits in a row finds names that begin with it. */
                name?: string;
                /** @description A group id, or `null` for files in no group. */
                group?: "null" | string;
                /**
                 * @description Only this media type.
                 * @example image/png
                 */
                mimeType?: string;
                /** @description Only this CID, however it is spelled. */
                cid?: string;
                /** @description `true`: only files that still wait for a CID; there are none. */
                cidPending?: "true" | "false";
                /**
                 * @description `keyvalues[<key>]=<value>`: all pairs must match.
                 * @example {
                 *       "season": "spring"
                 *     }
                 */
                keyvalues?: {
                    [key: string]: string;
                };
                /**
                 * @description The same as `keyvalues`.
                 * @example {
                 *       "season": "spring"
                 *     }
                 */
                metadata?: {
                    [key: string]: string;
                };
                /** @description `ASC` or `DESC` by age. */
                order?: "ASC" | "DESC";
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of files. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "files": [
                     *           {
                     *             "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "name": "Spring catalogue",
                     *             "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "size": 52428800,
                     *             "number_of_files": 2048,
                     *             "mime_type": "directory",
                     *             "keyvalues": {
                     *               "season": "spring"
                     *             },
                     *             "group_id": null,
                     *             "created_at": "2026-11-21T10:58:03.485934Z",
                     *             "expires_at": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            files: {
                                id: string;
                                name: string | null;
                                cid: string;
                                /** @description Bytes of the content. */
                                size: number;
                                number_of_files: number;
                                mime_type: string;
                                keyvalues: {
                                    [key: string]: string;
                                };
                                group_id: string | null;
                                created_at: string;
                                /** @description When it is to be deleted, a Unix time in seconds; null for never. */
                                expires_at: number | null;
                            }[];
                            /** @description Empty on the last page. */
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    uploadBySignedUrl: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id in the URL. */
                network: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "file": "<the bytes of logo.png>"
                 *     }
                 */
                "multipart/form-data": {
                    /** @description The file; or several, with paths for file names, which make a folder. If all of them are in one folder, the upload is that folder. */
                    file: string | string[];
                    /**
                     * @description `private` if left out.
                     * @default private
                     * @enum {string}
                     */
                    network?: "public" | "private";
                    /** @description If left out, the name of the file or the folder. */
                    name?: string;
                    /** Format: uuid */
                    group_id?: string;
                    /**
                     * Format: uuid
                     * @description The same as `group_id`.
                     */
                    group?: string;
                    /**
                     * Format: json-pairs
                     * @description Metadata: a JSON object of strings, at most ten pairs.
                     */
                    keyvalues?: string;
                    /**
                     * @description `true`: the file is a CAR, and the upload is the DAG of its one root.
                     * @enum {string}
                     */
                    car?: "true" | "false";
                    /**
                     * @description `v1` if left out.
                     * @enum {string}
                     */
                    cid_version?: "0" | "1" | "v0" | "v1";
                    /**
                     * Format: unix-time
                     * @description Unix time in seconds, when the file is to be deleted; never, if left out.
                     */
                    expires_at?: string;
                    /**
                     * @description Accepted; every file can be streamed.
                     * @enum {string}
                     */
                    streamable?: "true" | "false";
                };
            };
        };
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "logo.png",
                     *         "cid": "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e",
                     *         "size": 17408,
                     *         "number_of_files": 1,
                     *         "mime_type": "image/png",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "created_at": "2026-11-21T10:58:03.485934Z",
                     *         "expires_at": null,
                     *         "vectorized": false,
                     *         "network": "public",
                     *         "is_duplicate": false,
                     *         "user_id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            /** @description Bytes of the content. */
                            size: number;
                            number_of_files: number;
                            mime_type: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            created_at: string;
                            /** @description When it is to be deleted, a Unix time in seconds; null for never. */
                            expires_at: number | null;
                            /** @constant */
                            vectorized: false;
                            /** @enum {string} */
                            network: "public" | "private";
                            /** @description Whether the workspace had this content already, until `expires_at` or longer; then this is the file that it had. Only its `mime_type` changes, if this upload declares a better one. */
                            is_duplicate: boolean;
                            user_id: string;
                        };
                    };
                };
            };
            /** @description `Location` is where to send the bytes. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    terminateUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description What `Location` has at its end: whoever knows it may send bytes. */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its bytes are gone. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            410: components["responses"]["410"];
            412: components["responses"]["412"];
            423: components["responses"]["423"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    describeUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description What `Location` has at its end: whoever knows it may send bytes. */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many bytes have arrived, of how many. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            410: components["responses"]["410"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            423: components["responses"]["423"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    appendToUpload: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description What `Location` has at its end: whoever knows it may send bytes. */
                token: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example <bytes> */
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description The bytes are here; `Upload-Offset` says how many. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            410: components["responses"]["410"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            423: components["responses"]["423"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    getFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Spring catalogue",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "size": 52428800,
                     *         "number_of_files": 2048,
                     *         "mime_type": "directory",
                     *         "keyvalues": {
                     *           "season": "spring"
                     *         },
                     *         "group_id": null,
                     *         "created_at": "2026-11-21T10:58:03.485934Z",
                     *         "expires_at": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            /** @description Bytes of the content. */
                            size: number;
                            number_of_files: number;
                            mime_type: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            created_at: string;
                            /** @description When it is to be deleted, a Unix time in seconds; null for never. */
                            expires_at: number | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "keyvalues": {
                 *         "season": "summer",
                 *         "draft": null
                 *       }
                 *     }
                 */
                "application/json": {
                    /** @description `null` or empty: no name. */
                    name?: string | null;
                    /** @description Merged by key into the pairs that are there, of which there are 10 at most; `null` removes one. */
                    keyvalues?: {
                        [key: string]: string | null;
                    };
                    /** @description When it is to be deleted, within minutes: a Unix time in seconds. `null`: never. */
                    expires_at?: number | null;
                } | Record<string, never> | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The file as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "name": "Spring catalogue",
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "size": 52428800,
                     *         "number_of_files": 2048,
                     *         "mime_type": "directory",
                     *         "keyvalues": {
                     *           "season": "summer"
                     *         },
                     *         "group_id": null,
                     *         "created_at": "2026-11-21T10:58:03.485934Z",
                     *         "expires_at": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string | null;
                            cid: string;
                            /** @description Bytes of the content. */
                            size: number;
                            number_of_files: number;
                            mime_type: string;
                            keyvalues: {
                                [key: string]: string;
                            };
                            group_id: string | null;
                            created_at: string;
                            /** @description When it is to be deleted, a Unix time in seconds; null for never. */
                            expires_at: number | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteFile: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    pinByHash: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "hashToPin": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                 *       "pinataMetadata": {
                 *         "name": "token 1",
                 *         "keyvalues": {
                 *           "season": "spring"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to pin.
                     */
                    hashToPin: string;
                    pinataMetadata?: {
                        name?: string | null;
                        keyvalues?: {
                            [key: string]: string;
                        } | null;
                    } | null;
                    pinataOptions?: {
                        groupId?: string | null;
                        hostNodes?: string[] | null;
                        /** @description Accepted, without effect: Berth keeps one copy. */
                        customPinPolicy?: unknown;
                        /** @description Accepted, without effect. */
                        pinPolicy?: unknown;
                    } | null;
                };
            };
        };
        responses: {
            /** @description The pin request. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *       "ipfsHash": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *       "status": "prechecking",
                     *       "name": "token 1"
                     *     }
                     */
                    "application/json": {
                        id: string;
                        ipfsHash: string;
                        status: string;
                        name: string | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    pinList: {
        parameters: {
            query?: {
                /** @description `public` if left out. */
                network?: "public" | "private";
                /** @description Part of the CID. */
                hashContains?: string;
                /** @description Only files of this group. */
                groupId?: string;
                /** @description Pinned at this time or later. */
                pinStart?: string;
                /** @description Pinned at this time or earlier. */
                pinEnd?: string;
                /** @description Files of so many bytes or more. */
                pinSizeMin?: number;
                /** @description Files of so many bytes or fewer. */
                pinSizeMax?: number;
                /** @description Only requests in this status. */
                status?: "all" | "pinned" | "unpinned";
                /**
                 * @description `metadata[name]`: part of the name. `metadata[keyvalues]`: JSON, `{"<key>": {"value": …, "op": "eq"}}`.
                 * @example {
                 *       "season": "spring"
                 *     }
                 */
                metadata?: {
                    name?: string;
                    /** Format: json-pairs */
                    keyvalues?: string;
                };
                /** @description Adds `count`. */
                includeCount?: "true" | "false";
                /** @description How many files a page has. */
                pageLimit?: number;
                /** @description How many files to skip. */
                pageOffset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of files. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "count": 1,
                     *       "rows": [
                     *         {
                     *           "id": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *           "ipfs_pin_hash": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *           "size": 104,
                     *           "user_id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "date_pinned": "2026-11-21T10:58:03.485934Z",
                     *           "date_unpinned": null,
                     *           "metadata": {
                     *             "name": "token 1",
                     *             "keyvalues": {
                     *               "season": "spring"
                     *             }
                     *           },
                     *           "regions": [],
                     *           "mime_type": "application/json",
                     *           "number_of_files": 1
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description All that match; left out with `includeCount=false`. */
                        count?: number;
                        rows: {
                            id: string;
                            ipfs_pin_hash: string;
                            size: number;
                            user_id: string | null;
                            date_pinned: string;
                            date_unpinned: null;
                            metadata: {
                                name: string | null;
                                keyvalues: {
                                    [key: string]: string;
                                };
                            };
                            /** @description Empty: Berth keeps one copy. */
                            regions: Record<string, never>[];
                            mime_type: string;
                            number_of_files: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    unpin: {
        parameters: {
            query?: {
                /** @description `public` if left out. */
                network?: "public" | "private";
            };
            header?: never;
            path: {
                /** @description The CID. */
                hash: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description `OK` */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example OK */
                    "text/plain": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listEntries: {
        parameters: {
            query?: {
                /** @description A folder within it, as `images/small`. */
                path?: string;
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "entries": [
                     *           {
                     *             "name": "cover.png",
                     *             "cid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *             "type": "file",
                     *             "size": 91402
                     *           },
                     *           {
                     *             "name": "pages",
                     *             "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *             "type": "directory",
                     *             "size": 52337398
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            entries: {
                                /** @description Percent-escaped if it is not UTF-8. */
                                name: string;
                                cid: string;
                                /**
                                 * @description `other`: a link, or what is no file of UnixFS.
                                 * @enum {string}
                                 */
                                type: "file" | "directory" | "other";
                                /** @description Bytes of a file; of all else what its folder says, with the overhead of its DAG. */
                                size: number;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getFileDetails: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The details. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "signature": {
                     *           "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "signature": "0x1ba6c2a8412dc9b0be37b013ea5bddd97251dab4d435cc9c4c7bcf331d4017ca2de07485ad6a15ce60d3700cee802787bc7ede0c112c7843f702bb1e71b750911b",
                     *           "address": "0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc"
                     *         },
                     *         "swaps": [
                     *           {
                     *             "mapped_cid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *             "created_at": "2026-11-21T11:20:44.061733Z"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description Null if the content is not signed. */
                            signature: {
                                /** @description As it was asked for. */
                                cid: string;
                                signature: string;
                                /** @description The wallet that signed, as its owner says. */
                                address: string;
                            } | null;
                            /** @description Newest first, up to 1000. Empty if the CID was never swapped, or no gateway of the workspace has the hot swaps plugin. */
                            swaps: {
                                /** @description What the CID was swapped to; null where the swap was removed. */
                                mapped_cid: string | null;
                                /** @description UTC, with microseconds. */
                                created_at: string;
                            }[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listGroups: {
        parameters: {
            query?: {
                /** @description Part of the name, in any case. */
                name?: string;
                /** @description Only groups that are public, or only those that are not. */
                isPublic?: "true" | "false";
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of groups, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "groups": [
                     *           {
                     *             "id": "0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15",
                     *             "name": "Catalogues",
                     *             "is_public": false,
                     *             "created_at": "2026-11-21T10:40:12.101735Z"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            groups: {
                                id: string;
                                name: string;
                                is_public: boolean;
                                created_at: string;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Catalogues"
                 *     }
                 */
                "application/json": {
                    name: string;
                    /** @default false */
                    is_public?: boolean;
                };
            };
        };
        responses: {
            /** @description The group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15",
                     *         "name": "Catalogues",
                     *         "is_public": false,
                     *         "created_at": "2026-11-21T10:40:12.101735Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            is_public: boolean;
                            created_at: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15",
                     *         "name": "Catalogues",
                     *         "is_public": false,
                     *         "created_at": "2026-11-21T10:40:12.101735Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            is_public: boolean;
                            created_at: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "is_public": true
                 *     }
                 */
                "application/json": {
                    name?: string;
                    is_public?: boolean;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The group as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15",
                     *         "name": "Catalogues",
                     *         "is_public": true,
                     *         "created_at": "2026-11-21T10:40:12.101735Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            is_public: boolean;
                            created_at: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addFileToGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description The id of the file, a UUID. */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is in the group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    removeFileFromGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description The id of the file, a UUID. */
                fileId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is not in the group. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    swapHistory: {
        parameters: {
            query: {
                /**
                 * @description A gateway with the hot swaps plugin: its host, with or without port, or its left label.
                 * @example catalogues
                 */
                domain: string;
            };
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The original CID, however it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 1000 entries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "mapped_cid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *           "created_at": "2026-11-21T11:20:44.061733Z"
                     *         },
                     *         {
                     *           "mapped_cid": null,
                     *           "created_at": "2026-11-21T10:58:03.485934Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description What the CID was swapped to; null where the swap was removed. */
                            mapped_cid: string | null;
                            /** @description UTC, with microseconds. */
                            created_at: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    swapCid: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The original CID, however it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "swap_cid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to serve from now on: a file of the same network.
                     */
                    swap_cid?: string;
                    /**
                     * Format: cid
                     * @description The same as `swap_cid`.
                     */
                    swapCid?: string;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The entry in force. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "mapped_cid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *         "created_at": "2026-11-21T11:20:44.061733Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description What the CID was swapped to; null where the swap was removed. */
                            mapped_cid: string | null;
                            /** @description UTC, with microseconds. */
                            created_at: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSwap: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description The original CID, however it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    swapHistoryOlder: {
        parameters: {
            query: {
                /**
                 * @description A gateway with the hot swaps plugin: its host, with or without port, or its left label.
                 * @example catalogues
                 */
                domain: string;
            };
            header?: never;
            path: {
                /** @description The original CID, however it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 1000 entries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "mappedCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *           "createdAt": "2026-11-21T11:20:44.061733Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            mappedCid: string | null;
                            createdAt: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    swapCidOlder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The original CID, however it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "swapCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description The CID to serve from now on: a file of the same network.
                     */
                    swap_cid?: string;
                    /**
                     * Format: cid
                     * @description The same as `swap_cid`.
                     */
                    swapCid?: string;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The entry in force. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "mappedCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *         "createdAt": "2026-11-21T11:20:44.061733Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            mappedCid: string | null;
                            createdAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSwapOlder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The original CID, however it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getSignature: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description However it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signature. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "signature": "0x1ba6c2a8412dc9b0be37b013ea5bddd97251dab4d435cc9c4c7bcf331d4017ca2de07485ad6a15ce60d3700cee802787bc7ede0c112c7843f702bb1e71b750911b",
                     *         "address": "0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description As it was asked for. */
                            cid: string;
                            signature: string;
                            /** @description The wallet that signed, as its owner says. */
                            address: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addSignature: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description However it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "signature": "0x1ba6c2a8412dc9b0be37b013ea5bddd97251dab4d435cc9c4c7bcf331d4017ca2de07485ad6a15ce60d3700cee802787bc7ede0c112c7843f702bb1e71b750911b",
                 *       "address": "0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc"
                 *     }
                 */
                "application/json": {
                    signature: string;
                    address: string;
                };
            };
        };
        responses: {
            /** @description The signature. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "cid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "signature": "0x1ba6c2a8412dc9b0be37b013ea5bddd97251dab4d435cc9c4c7bcf331d4017ca2de07485ad6a15ce60d3700cee802787bc7ede0c112c7843f702bb1e71b750911b",
                     *         "address": "0xbC18447255e86f7f6c01C25e82636dDc587Ef9dc"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description As it was asked for. */
                            cid: string;
                            signature: string;
                            /** @description The wallet that signed, as its owner says. */
                            address: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSignature: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The IPFS network. */
                network: "public" | "private";
                /** @description However it is spelled. */
                cid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listPlugins: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Each plugin with the gateway that has it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "gateway_id": "0193a1c2-5e07-7d19-a4b3-81f06c2d97e5",
                     *           "plugin_id": 2
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            gateway_id: string;
                            plugin_id: number;
                        }[];
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listOfferedPlugins: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plugins. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "id": 2,
                     *           "name": "Hot Swaps",
                     *           "description": "Serves newer content under the address of a CID that was given away before.",
                     *           "tags": [
                     *             "files"
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: number;
                            name: string;
                            description: string;
                            tags: string[];
                        }[];
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getOfferedPlugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The number of the plugin: 2 is hot swaps.
                 * @example 2
                 */
                plugin_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plugin. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": 2,
                     *         "name": "Hot Swaps",
                     *         "description": "Serves newer content under the address of a CID that was given away before.",
                     *         "tags": [
                     *           "files"
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: number;
                            name: string;
                            description: string;
                            tags: string[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listGatewayPlugins: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the gateway, a UUID. */
                gateway_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its plugins. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "gateway_id": "0193a1c2-5e07-7d19-a4b3-81f06c2d97e5",
                     *           "plugin_id": 2
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            gateway_id: string;
                            plugin_id: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    installPlugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the gateway, a UUID. */
                gateway_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plugin_id": 2
                 *     }
                 */
                "application/json": {
                    plugin_id: number;
                };
            };
        };
        responses: {
            /** @description The gateway has it, or had it already. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "gateway_id": "0193a1c2-5e07-7d19-a4b3-81f06c2d97e5",
                     *         "plugin_id": 2
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            gateway_id: string;
                            plugin_id: number;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    removePlugin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the gateway, a UUID. */
                gateway_id: string;
                /**
                 * @description The number of the plugin: 2 is hot swaps.
                 * @example 2
                 */
                plugin_id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listGateways: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All gateways of the workspace, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "count": 1,
                     *         "rows": [
                     *           {
                     *             "id": "0193a1c2-5e07-7d19-a4b3-81f06c2d97e5",
                     *             "created_at": "2026-11-21T10:41:07.220Z",
                     *             "domain": "catalogues",
                     *             "host": "catalogues.gateway.localhost",
                     *             "restrict": false,
                     *             "custom_domains": []
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            count: number;
                            rows: {
                                id: string;
                                created_at: string;
                                /** @description The left label of its host. */
                                domain: string;
                                /** @description Its host; scheme and port are those of the API. */
                                host: string;
                                /** @description Whether it has access tokens, and public content is read with one of them only. */
                                restrict: boolean;
                                custom_domains: {
                                    domain: string;
                                    /**
                                     * @description `active` once its TXT record was seen; from then on the gateway is there.
                                     * @enum {string}
                                     */
                                    domain_validation_status: "pending" | "active";
                                    custom_domain_id: string;
                                    /**
                                     * @description The same: certificates are the TLS proxy’s, which may get one for an active domain.
                                     * @enum {string}
                                     */
                                    ssl_validation_status: "initializing" | "active";
                                    /** @description Name of the TXT record that is still to be seen; null when it is active. */
                                    txt_name: string | null;
                                    /** @description Its value. */
                                    txt_value: string | null;
                                    /** @description Where a CNAME record of the domain is to point. */
                                    cname_target: string;
                                }[];
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createGateway: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "domain": "catalogues"
                 *     }
                 */
                "application/json": {
                    /** Format: gateway-name */
                    domain: string;
                };
            };
        };
        responses: {
            /** @description The gateway. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c2-5e07-7d19-a4b3-81f06c2d97e5",
                     *         "created_at": "2026-11-21T10:41:07.220Z",
                     *         "domain": "catalogues",
                     *         "host": "catalogues.gateway.localhost",
                     *         "restrict": false,
                     *         "custom_domains": [],
                     *         "inner_cids": true,
                     *         "cid_hosts": false,
                     *         "settings": {
                     *           "restriction_policies": {
                     *             "accessTokens": [],
                     *             "allowedHosts": [],
                     *             "allowedIPAddresses": []
                     *           }
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            created_at: string;
                            /** @description The left label of its host. */
                            domain: string;
                            /** @description Its host; scheme and port are those of the API. */
                            host: string;
                            /** @description Whether it has access tokens, and public content is read with one of them only. */
                            restrict: boolean;
                            custom_domains: {
                                domain: string;
                                /**
                                 * @description `active` once its TXT record was seen; from then on the gateway is there.
                                 * @enum {string}
                                 */
                                domain_validation_status: "pending" | "active";
                                custom_domain_id: string;
                                /**
                                 * @description The same: certificates are the TLS proxy’s, which may get one for an active domain.
                                 * @enum {string}
                                 */
                                ssl_validation_status: "initializing" | "active";
                                /** @description Name of the TXT record that is still to be seen; null when it is active. */
                                txt_name: string | null;
                                /** @description Its value. */
                                txt_value: string | null;
                                /** @description Where a CNAME record of the domain is to point. */
                                cname_target: string;
                            }[];
                            /** @description Serves what is within the public files of the workspace by its own CID as well. */
                            inner_cids: boolean;
                            /** @description Redirects public content from its path to the host of its CID, which is an origin of its own. */
                            cid_hosts: boolean;
                            settings: {
                                restriction_policies: {
                                    accessTokens: {
                                        id: string;
                                        /** @description The token. It is shown this once: empty in every other answer. */
                                        value: string;
                                        createdAt: string;
                                    }[];
                                    /** @description Always empty. */
                                    allowedHosts: unknown[];
                                    /** @description Always empty. */
                                    allowedIPAddresses: unknown[];
                                };
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    gatewayExists: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The name of a gateway: the left label of its host.
                 * @example catalogues
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether any workspace has a gateway of this name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "exists": true
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            exists: boolean;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getGateway: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The gateway. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c2-5e07-7d19-a4b3-81f06c2d97e5",
                     *         "created_at": "2026-11-21T10:41:07.220Z",
                     *         "domain": "catalogues",
                     *         "host": "catalogues.gateway.localhost",
                     *         "restrict": false,
                     *         "custom_domains": [],
                     *         "inner_cids": true,
                     *         "cid_hosts": false,
                     *         "settings": {
                     *           "restriction_policies": {
                     *             "accessTokens": [],
                     *             "allowedHosts": [],
                     *             "allowedIPAddresses": []
                     *           }
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            created_at: string;
                            /** @description The left label of its host. */
                            domain: string;
                            /** @description Its host; scheme and port are those of the API. */
                            host: string;
                            /** @description Whether it has access tokens, and public content is read with one of them only. */
                            restrict: boolean;
                            custom_domains: {
                                domain: string;
                                /**
                                 * @description `active` once its TXT record was seen; from then on the gateway is there.
                                 * @enum {string}
                                 */
                                domain_validation_status: "pending" | "active";
                                custom_domain_id: string;
                                /**
                                 * @description The same: certificates are the TLS proxy’s, which may get one for an active domain.
                                 * @enum {string}
                                 */
                                ssl_validation_status: "initializing" | "active";
                                /** @description Name of the TXT record that is still to be seen; null when it is active. */
                                txt_name: string | null;
                                /** @description Its value. */
                                txt_value: string | null;
                                /** @description Where a CNAME record of the domain is to point. */
                                cname_target: string;
                            }[];
                            /** @description Serves what is within the public files of the workspace by its own CID as well. */
                            inner_cids: boolean;
                            /** @description Redirects public content from its path to the host of its CID, which is an origin of its own. */
                            cid_hosts: boolean;
                            settings: {
                                restriction_policies: {
                                    accessTokens: {
                                        id: string;
                                        /** @description The token. It is shown this once: empty in every other answer. */
                                        value: string;
                                        createdAt: string;
                                    }[];
                                    /** @description Always empty. */
                                    allowedHosts: unknown[];
                                    /** @description Always empty. */
                                    allowedIPAddresses: unknown[];
                                };
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteGateway: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeGatewayServing: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "inner_cids": true
                 *     }
                 */
                "application/json": {
                    /** @description Serves what is within the public files of the workspace by its own CID as well. */
                    inner_cids?: boolean;
                    /** @description Redirects public content from its path to the host of its CID, which is an origin of its own. */
                    cid_hosts?: boolean;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "inner_cids": true,
                     *         "cid_hosts": false
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description Serves what is within the public files of the workspace by its own CID as well. */
                            inner_cids: boolean;
                            /** @description Redirects public content from its path to the host of its CID, which is an origin of its own. */
                            cid_hosts: boolean;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createGatewayToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token. It is shown this once. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c6-3b9f-7e44-9d08-2a7c51f4e6b0",
                     *         "value": "q3V0bGU4c2hpcHMgZG9jayBhdCB0aGUgYmVydGggYXQgZGF3biBldmVyeSBkYXk",
                     *         "createdAt": "2026-11-21T11:02:31.907Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @description The token. It is shown this once: empty in every other answer. */
                            value: string;
                            createdAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteGatewayToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description The id of the access token, a UUID. */
                item_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addGatewayDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "domain": "files.example.com"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: domain-name
                     * @description A domain of one’s own, such as `files.example.com`.
                     */
                    domain?: string;
                    /**
                     * Format: domain-name
                     * @description The same.
                     */
                    custom_domain?: string;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "domain": "files.example.com",
                     *         "domain_validation_status": "pending",
                     *         "custom_domain_id": "0193a1c2-7b44-7e02-9d1c-5a3f8e6b2c91",
                     *         "ssl_validation_status": "initializing",
                     *         "txt_name": "_service-verify.files.example.com",
                     *         "txt_value": "berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE",
                     *         "cname_target": "catalogues.gateway.localhost"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            domain: string;
                            /**
                             * @description `active` once its TXT record was seen; from then on the gateway is there.
                             * @enum {string}
                             */
                            domain_validation_status: "pending" | "active";
                            custom_domain_id: string;
                            /**
                             * @description The same: certificates are the TLS proxy’s, which may get one for an active domain.
                             * @enum {string}
                             */
                            ssl_validation_status: "initializing" | "active";
                            /** @description Name of the TXT record that is still to be seen; null when it is active. */
                            txt_name: string | null;
                            /** @description Its value. */
                            txt_value: string | null;
                            /** @description Where a CNAME record of the domain is to point. */
                            cname_target: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getGatewayDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description The id of the domain, a UUID. */
                custom_domain_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "domain": "files.example.com",
                     *         "domain_validation_status": "pending",
                     *         "custom_domain_id": "0193a1c2-7b44-7e02-9d1c-5a3f8e6b2c91",
                     *         "ssl_validation_status": "initializing",
                     *         "txt_name": "_service-verify.files.example.com",
                     *         "txt_value": "berth-verify=3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrTaE",
                     *         "cname_target": "catalogues.gateway.localhost"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            domain: string;
                            /**
                             * @description `active` once its TXT record was seen; from then on the gateway is there.
                             * @enum {string}
                             */
                            domain_validation_status: "pending" | "active";
                            custom_domain_id: string;
                            /**
                             * @description The same: certificates are the TLS proxy’s, which may get one for an active domain.
                             * @enum {string}
                             */
                            ssl_validation_status: "initializing" | "active";
                            /** @description Name of the TXT record that is still to be seen; null when it is active. */
                            txt_name: string | null;
                            /** @description Its value. */
                            txt_value: string | null;
                            /** @description Where a CNAME record of the domain is to point. */
                            cname_target: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteGatewayDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description The id of the domain, a UUID. */
                custom_domain_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    verifyGatewayDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description The id of the domain, a UUID. */
                custom_domain_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "domain": "files.example.com",
                     *         "domain_validation_status": "active",
                     *         "custom_domain_id": "0193a1c2-7b44-7e02-9d1c-5a3f8e6b2c91",
                     *         "ssl_validation_status": "active",
                     *         "txt_name": null,
                     *         "txt_value": null,
                     *         "cname_target": "catalogues.gateway.localhost"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            domain: string;
                            /**
                             * @description `active` once its TXT record was seen; from then on the gateway is there.
                             * @enum {string}
                             */
                            domain_validation_status: "pending" | "active";
                            custom_domain_id: string;
                            /**
                             * @description The same: certificates are the TLS proxy’s, which may get one for an active domain.
                             * @enum {string}
                             */
                            ssl_validation_status: "initializing" | "active";
                            /** @description Name of the TXT record that is still to be seen; null when it is active. */
                            txt_name: string | null;
                            /** @description Its value. */
                            txt_value: string | null;
                            /** @description Where a CNAME record of the domain is to point. */
                            cname_target: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    topAnalytics: {
        parameters: {
            query: {
                /** @description A gateway of the workspace: its host, or its left label. */
                gateway_domain: string;
                /** @description The first day, in UTC. Without it: from the first that is kept. */
                start_date?: string;
                /** @description The last day. Without it: today. */
                end_date?: string;
                /** @description Only requests for this CID, however it is spelled. */
                cid?: string;
                /** @description Only those for files of this name. */
                file_name?: string;
                /** @description Only those of this program. */
                user_agent?: string;
                /** @description Only those that pages of this origin led to. */
                referer?: string;
                /** @description The same as `referer`. */
                referrer?: string;
                /** @description Nothing is counted by country: the answer is empty. */
                country?: string;
                /** @description Nor by region. */
                region?: string;
                /** @description Only those that were answered with this status; 499 for answers that were cut short. */
                http_status_code?: string;
                /** @description How many items a page has. */
                limit?: number;
                /** @description Whether the least or the most, the first or the last, comes first. */
                sort_order?: "asc" | "desc";
                /** @description What is counted together. */
                by: "cid" | "file_name" | "user_agent" | "referer" | "referrer" | "country" | "region";
                /** @description What the values are sorted by. */
                sort_by?: "requests" | "bandwidth";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Totals of the days, the greatest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": [
                     *         {
                     *           "value": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "requests": 1341,
                     *           "bandwidth": 287310699
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        data: {
                            value: string;
                            requests: number;
                            /** @description Bytes sent, headers included. */
                            bandwidth: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    analyticsTimeSeries: {
        parameters: {
            query: {
                /** @description A gateway of the workspace: its host, or its left label. */
                gateway_domain: string;
                /** @description The first day, in UTC. Without it: from the first that is kept. */
                start_date?: string;
                /** @description The last day. Without it: today. */
                end_date?: string;
                /** @description Only requests for this CID, however it is spelled. */
                cid?: string;
                /** @description Only those for files of this name. */
                file_name?: string;
                /** @description Only those of this program. */
                user_agent?: string;
                /** @description Only those that pages of this origin led to. */
                referer?: string;
                /** @description The same as `referer`. */
                referrer?: string;
                /** @description Nothing is counted by country: the answer is empty. */
                country?: string;
                /** @description Nor by region. */
                region?: string;
                /** @description Only those that were answered with this status; 499 for answers that were cut short. */
                http_status_code?: string;
                /** @description How many items a page has. */
                limit?: number;
                /** @description Whether the least or the most, the first or the last, comes first. */
                sort_order?: "asc" | "desc";
                /** @description `day`, where nothing is said. */
                date_interval?: "day" | "week";
                /** @description The same as `date_interval`. */
                by?: "day" | "week";
                /** @description Without it: by time, the newest first. */
                sort_by?: "requests" | "bandwidth";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The periods, and the totals of all of them, also of those beyond `limit`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "total_requests": 209,
                     *         "total_bandwidth": 131151812,
                     *         "time_periods": [
                     *           {
                     *             "period_start_time": "2026-11-22",
                     *             "requests": 100,
                     *             "bandwidth": 75721161
                     *           },
                     *           {
                     *             "period_start_time": "2026-11-21",
                     *             "requests": 109,
                     *             "bandwidth": 55430651
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            total_requests: number;
                            total_bandwidth: number;
                            time_periods: {
                                /** @description The day, or the Monday of the week. */
                                period_start_time: string;
                                requests: number;
                                /** @description Bytes sent, headers included. */
                                bandwidth: number;
                            }[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    testAuthentication: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is good, whatever its scopes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "message": "Congratulations! You are communicating with the Pinata API!"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        message: "Congratulations! You are communicating with the Pinata API!";
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getPinnedTotal: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The totals. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "pin_count": 128,
                     *       "pin_size_total": 734003200,
                     *       "pin_size_with_replications_total": 734003200
                     *     }
                     */
                    "application/json": {
                        pin_count: number;
                        /** @description Bytes of content. */
                        pin_size_total: number;
                        /** @description The same: Berth keeps one copy. */
                        pin_size_with_replications_total: number;
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getUsage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Both networks together. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "plan": "pro",
                     *         "files": 128,
                     *         "bytes": 734003200,
                     *         "limit_bytes": 1099511627776,
                     *         "max_file_bytes": 26843545600
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            plan: string;
                            files: number;
                            bytes: number;
                            /** @description What the plan stores in all; null for no limit. */
                            limit_bytes: number | null;
                            /** @description What it allows for one file; null for no limit. */
                            max_file_bytes: number | null;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description Only keys that are revoked, or only those that are not. */
                revoked?: "true" | "false";
                /** @description Only keys with a limited number of uses, or only those without. */
                limitedUse?: "true" | "false";
                /** @description Only keys with no uses left, or only those with some. */
                exhausted?: "true" | "false";
                /** @description Part of the name, in any case. */
                name?: string;
                /** @description How many items to skip. */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Up to 100 keys, newest first, and how many match. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {
                     *           "id": "0193a1c5-02aa-7a31-93be-6d1f8e20c94b",
                     *           "name": "website",
                     *           "key": "5f0c2b7be1d94a30a7e6",
                     *           "secret": "",
                     *           "max_uses": null,
                     *           "uses": 0,
                     *           "user_id": "0193a1b0-4410-7f6e-8d27-c05b9e61a3f2",
                     *           "scopes": {
                     *             "admin": false,
                     *             "resources": [
                     *               "org:files:read",
                     *               "org:groups:read"
                     *             ],
                     *             "endpoints": {
                     *               "data": {
                     *                 "pinList": true,
                     *                 "userPinnedDataTotal": true
                     *               },
                     *               "pinning": {
                     *                 "pinJobs": true,
                     *                 "hashMetadata": false,
                     *                 "hashPinPolicy": false,
                     *                 "pinByHash": false,
                     *                 "pinFileToIPFS": false,
                     *                 "pinJSONToIPFS": false,
                     *                 "unpin": false,
                     *                 "userPinPolicy": false
                     *               }
                     *             }
                     *           },
                     *           "revoked": false,
                     *           "createdAt": "2026-11-21T10:59:00.314Z",
                     *           "updatedAt": "2026-11-21T10:59:00.314Z"
                     *         }
                     *       ],
                     *       "count": 1
                     *     }
                     */
                    "application/json": {
                        keys: {
                            id: string;
                            name: string;
                            key: string;
                            /** @description Always empty: a secret is shown once, when its key is made. */
                            secret: string;
                            max_uses: number | null;
                            uses: number;
                            user_id: string | null;
                            /** @description As `permissions` of a new key. */
                            scopes: {
                                admin: boolean;
                                resources: string[];
                                /** @description What the key may do, as switches. */
                                endpoints: {
                                    data: {
                                        [key: string]: boolean;
                                    };
                                    pinning: {
                                        [key: string]: boolean;
                                    };
                                };
                            };
                            revoked: boolean;
                            createdAt: string;
                            updatedAt: string;
                        }[];
                        count: number;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "keyName": "website",
                 *       "permissions": {
                 *         "resources": [
                 *           "org:files:read",
                 *           "org:groups:read"
                 *         ]
                 *       }
                 *     }
                 */
                "application/json": {
                    keyName: string;
                    permissions: {
                        admin?: boolean;
                        resources?: ("admin" | "org:read" | "org:write" | "org:files:read" | "org:files:write" | "org:groups:read" | "org:groups:write" | "org:gateways:read" | "org:gateways:write" | "org:analytics:read" | "org:analytics:write" | "org:agents:read" | "org:agents:write" | "org:private_files:write" | "instance:read" | "instance:write")[];
                        endpoints?: {
                            data?: {
                                [key: string]: boolean;
                            };
                            pinning?: {
                                [key: string]: boolean;
                            };
                        };
                    };
                    maxUses?: number;
                    /** @description Without it: as long as the key that creates it. */
                    expiresInHours?: number;
                };
            };
        };
        responses: {
            /** @description The key. It is shown this once. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjNSJ9.c2lnbmF0dXJl",
                     *       "pinata_api_key": "5f0c2b7be1d94a30a7e6",
                     *       "pinata_api_secret": "c1f0e2d3a4b5968778695a4b3c2d1e0f"
                     *     }
                     */
                    "application/json": {
                        JWT: string;
                        pinata_api_key: string;
                        pinata_api_secret: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's public half, or its id. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked, from this moment on. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example Revoked */
                    "application/json": "Revoked";
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key's public half, or its id. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked, from this moment on. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example Revoked */
                    "application/json": "Revoked";
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listWorkspaces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "workspaces": [
                     *           {
                     *             "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *             "name": "catalogues",
                     *             "createdAt": "2026-11-21T10:30:51.204Z",
                     *             "plan": {
                     *               "name": "pro",
                     *               "agentLimit": 20,
                     *               "secretLimit": 500,
                     *               "channels": true,
                     *               "customDomains": true,
                     *               "pinByCid": true,
                     *               "hotSwaps": true,
                     *               "maxFileBytes": 26843545600,
                     *               "storageBytes": 1099511627776,
                     *               "requestsPerMinute": 600,
                     *               "agentDiskMb": null
                     *             },
                     *             "role": "owner",
                     *             "usage": {
                     *               "files": 128,
                     *               "bytes": 734003200
                     *             }
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            workspaces: {
                                id: string;
                                name: string;
                                createdAt: string;
                                /** @description What the plan allows; `null` is no limit. */
                                plan: {
                                    name: string;
                                    agentLimit: number | null;
                                    secretLimit: number | null;
                                    channels: boolean;
                                    customDomains: boolean;
                                    pinByCid: boolean;
                                    hotSwaps: boolean;
                                    maxFileBytes: number | null;
                                    storageBytes: number | null;
                                    requestsPerMinute: number | null;
                                    /** @description `null` is the setting `BERTH_AGENT_DISK_MB`. */
                                    agentDiskMb: number | null;
                                };
                                /**
                                 * @description Of the user of the key.
                                 * @enum {string}
                                 */
                                role: "owner" | "member" | "viewer";
                                /** @description What both networks keep of it. */
                                usage: {
                                    files: number;
                                    bytes: number;
                                };
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "createdAt": "2026-11-21T10:30:51.204Z",
                     *         "plan": {
                     *           "name": "pro",
                     *           "agentLimit": 20,
                     *           "secretLimit": 500,
                     *           "channels": true,
                     *           "customDomains": true,
                     *           "pinByCid": true,
                     *           "hotSwaps": true,
                     *           "maxFileBytes": 26843545600,
                     *           "storageBytes": 1099511627776,
                     *           "requestsPerMinute": 600,
                     *           "agentDiskMb": null
                     *         },
                     *         "role": "owner",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            createdAt: string;
                            /** @description What the plan allows; `null` is no limit. */
                            plan: {
                                name: string;
                                agentLimit: number | null;
                                secretLimit: number | null;
                                channels: boolean;
                                customDomains: boolean;
                                pinByCid: boolean;
                                hotSwaps: boolean;
                                maxFileBytes: number | null;
                                storageBytes: number | null;
                                requestsPerMinute: number | null;
                                /** @description `null` is the setting `BERTH_AGENT_DISK_MB`. */
                                agentDiskMb: number | null;
                            };
                            /**
                             * @description Of the user of the key.
                             * @enum {string}
                             */
                            role: "owner" | "member" | "viewer";
                            /** @description What both networks keep of it. */
                            usage: {
                                files: number;
                                bytes: number;
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    renameWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "catalogues"
                 *     }
                 */
                "application/json": {
                    name: string;
                };
            };
        };
        responses: {
            /** @description The workspace as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "createdAt": "2026-11-21T10:30:51.204Z",
                     *         "plan": {
                     *           "name": "pro",
                     *           "agentLimit": 20,
                     *           "secretLimit": 500,
                     *           "channels": true,
                     *           "customDomains": true,
                     *           "pinByCid": true,
                     *           "hotSwaps": true,
                     *           "maxFileBytes": 26843545600,
                     *           "storageBytes": 1099511627776,
                     *           "requestsPerMinute": 600,
                     *           "agentDiskMb": null
                     *         },
                     *         "role": "owner",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            createdAt: string;
                            /** @description What the plan allows; `null` is no limit. */
                            plan: {
                                name: string;
                                agentLimit: number | null;
                                secretLimit: number | null;
                                channels: boolean;
                                customDomains: boolean;
                                pinByCid: boolean;
                                hotSwaps: boolean;
                                maxFileBytes: number | null;
                                storageBytes: number | null;
                                requestsPerMinute: number | null;
                                /** @description `null` is the setting `BERTH_AGENT_DISK_MB`. */
                                agentDiskMb: number | null;
                            };
                            /**
                             * @description Of the user of the key.
                             * @enum {string}
                             */
                            role: "owner" | "member" | "viewer";
                            /** @description What both networks keep of it. */
                            usage: {
                                files: number;
                                bytes: number;
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listMembers: {
        parameters: {
            query?: {
                /** @description Only members with this role. */
                role?: "owner" | "member" | "viewer";
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of members, those who have been users the longest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "members": [
                     *           {
                     *             "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *             "name": "Ada",
                     *             "role": "member"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            members: {
                                id: string;
                                name: string;
                                /** @enum {string} */
                                role: "owner" | "member" | "viewer";
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    removeMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
                /** @description The id of the user, a UUID. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
                /** @description The id of the user, a UUID. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "viewer"
                 *     }
                 */
                "application/json": {
                    /** @enum {string} */
                    role: "owner" | "member" | "viewer";
                };
            };
        };
        responses: {
            /** @description The member. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Ada",
                     *         "role": "viewer"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            /** @enum {string} */
                            role: "owner" | "member" | "viewer";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listInvitations: {
        parameters: {
            query?: {
                /** @description Only invitations in this state. */
                state?: "pending" | "accepted" | "revoked" | "expired";
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of invitations, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "invitations": [
                     *           {
                     *             "id": "0193a1c9-3b50-7e41-a7d6-0c9f52e81b34",
                     *             "role": "member",
                     *             "email": "ada@example.com",
                     *             "state": "pending",
                     *             "invitedBy": "0193a1b0-4410-7f6e-8d27-c05b9e61a3f2",
                     *             "acceptedBy": null,
                     *             "createdAt": "2026-11-21T11:02:10.480Z",
                     *             "expiresAt": "2026-11-28T11:02:10.476Z"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            invitations: {
                                id: string;
                                /** @enum {string} */
                                role: "owner" | "member" | "viewer";
                                email: string | null;
                                /** @enum {string} */
                                state: "pending" | "accepted" | "revoked" | "expired";
                                /** @description The id of the user. */
                                invitedBy: string;
                                /** @description The id of the user who became a member by it. */
                                acceptedBy: string | null;
                                createdAt: string;
                                expiresAt: string;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "member",
                 *       "email": "ada@example.com"
                 *     }
                 */
                "application/json": {
                    /** @enum {string} */
                    role: "owner" | "member" | "viewer";
                    /** @description A note for whom it is. No mail is sent: hand the token over yourself. */
                    email?: string;
                    /** @default 168 */
                    expiresInHours?: number;
                };
            };
        };
        responses: {
            /** @description The invitation, with its token. It is shown this once. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c9-3b50-7e41-a7d6-0c9f52e81b34",
                     *         "role": "member",
                     *         "email": "ada@example.com",
                     *         "state": "pending",
                     *         "invitedBy": "0193a1b0-4410-7f6e-8d27-c05b9e61a3f2",
                     *         "acceptedBy": null,
                     *         "createdAt": "2026-11-21T11:02:10.480Z",
                     *         "expiresAt": "2026-11-28T11:02:10.476Z",
                     *         "token": "invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @enum {string} */
                            role: "owner" | "member" | "viewer";
                            email: string | null;
                            /** @enum {string} */
                            state: "pending" | "accepted" | "revoked" | "expired";
                            /** @description The id of the user. */
                            invitedBy: string;
                            /** @description The id of the user who became a member by it. */
                            acceptedBy: string | null;
                            createdAt: string;
                            expiresAt: string;
                            token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    revokeInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
                /** @description The id of the invitation, a UUID. */
                invitationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Nobody can accept it any more. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    acceptInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT",
                 *       "name": "Ada"
                 *     }
                 */
                "application/json": {
                    token: string;
                    name: string;
                };
            };
        };
        responses: {
            /** @description The new member. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "workspace": {
                     *           "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *           "name": "catalogues"
                     *         },
                     *         "user": {
                     *           "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "name": "Ada"
                     *         },
                     *         "role": "member",
                     *         "token": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFjOSJ9.c2lnbmF0dXJl"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            workspace: {
                                id: string;
                                name: string;
                            };
                            user: {
                                id: string;
                                name: string;
                            };
                            /** @enum {string} */
                            role: "owner" | "member" | "viewer";
                            /** @description An API key of the new member, with `admin`, or `org:read` for a viewer. It is shown this once. */
                            token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    listWorkspaceKeys: {
        parameters: {
            query?: {
                /** @description Part of the name, in any case. */
                name?: string;
                /** @description Only keys that are revoked, or only those that are not. */
                revoked?: "true" | "false";
                /** @description Only keys of this user. */
                userId?: string;
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of keys, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "keys": [
                     *           {
                     *             "id": "0193a1c5-02aa-7a31-93be-6d1f8e20c94b",
                     *             "name": "website",
                     *             "publicKey": "5f0c2b7be1d94a30a7e6",
                     *             "user": {
                     *               "id": "0193a1b0-4410-7f6e-8d27-c05b9e61a3f2",
                     *               "name": "owner"
                     *             },
                     *             "scopes": [
                     *               "org:files:read",
                     *               "org:groups:read"
                     *             ],
                     *             "maxUses": null,
                     *             "uses": 0,
                     *             "createdAt": "2026-11-21T10:59:01.133Z",
                     *             "expiresAt": null,
                     *             "revokedAt": null,
                     *             "lastUsedAt": "2026-11-21T11:42:07.518Z"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            keys: {
                                id: string;
                                name: string;
                                publicKey: string;
                                /** @description For whom it acts; null for a key that acts for nobody. */
                                user: {
                                    id: string;
                                    name: string;
                                } | null;
                                scopes: string[];
                                maxUses: number | null;
                                /** @description Counted where they are limited. */
                                uses: number;
                                createdAt: string;
                                expiresAt: string | null;
                                revokedAt: string | null;
                                /** @description To the minute; null for a key that was not used. */
                                lastUsedAt: string | null;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    revokeWorkspaceKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the workspace of the key, a UUID. Any other one answers 404. */
                workspaceId: string;
                /** @description The id of the key, a UUID. */
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked, from this moment on. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    waysToSignIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The ways. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "passkey": true,
                     *         "oidc": {
                     *           "name": "Example"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description Whether browsers can use passkeys at this address. */
                            passkey: boolean;
                            /** @description The OpenID provider, where one is set. */
                            oidc: {
                                name: string;
                            } | null;
                        };
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    login: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "login_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT"
                 *     }
                 */
                "application/json": {
                    token: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90",
                     *         "expiresAt": "2026-11-28T11:40:02.116Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    loginByInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT",
                 *       "name": "Ada"
                 *     }
                 */
                "application/json": {
                    token: string;
                    name: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90",
                     *         "expiresAt": "2026-11-28T11:40:02.116Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    logout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    whoAmI: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The caller. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "user": {
                     *           "id": "0193a1b0-4410-7f6e-8d27-c05b9e61a3f2",
                     *           "name": "owner"
                     *         },
                     *         "workspace": {
                     *           "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *           "name": "catalogues"
                     *         },
                     *         "role": "owner",
                     *         "scopes": [
                     *           "admin",
                     *           "instance:write"
                     *         ],
                     *         "isInstanceAdmin": true,
                     *         "plan": {
                     *           "name": "pro",
                     *           "agentLimit": 20,
                     *           "secretLimit": 500,
                     *           "channels": true,
                     *           "customDomains": true,
                     *           "pinByCid": true,
                     *           "hotSwaps": true,
                     *           "maxFileBytes": 26843545600,
                     *           "storageBytes": 1099511627776,
                     *           "requestsPerMinute": 600,
                     *           "agentDiskMb": null
                     *         },
                     *         "session": {
                     *           "id": "0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90",
                     *           "expiresAt": "2026-11-28T11:40:02.116Z"
                     *         },
                     *         "workspaces": [
                     *           {
                     *             "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *             "name": "catalogues",
                     *             "role": "owner"
                     *           },
                     *           {
                     *             "id": "0193a1c0-51d2-7c3f-8a04-9d2e61b7f3a5",
                     *             "name": "reading room",
                     *             "role": "viewer"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            user: {
                                id: string;
                                name: string;
                            };
                            workspace: {
                                id: string;
                                name: string;
                            };
                            /** @enum {string} */
                            role: "owner" | "member" | "viewer";
                            scopes: string[];
                            isInstanceAdmin: boolean;
                            /** @description What the plan allows; `null` is no limit. */
                            plan: {
                                name: string;
                                agentLimit: number | null;
                                secretLimit: number | null;
                                channels: boolean;
                                customDomains: boolean;
                                pinByCid: boolean;
                                hotSwaps: boolean;
                                maxFileBytes: number | null;
                                storageBytes: number | null;
                                requestsPerMinute: number | null;
                                /** @description `null` is the setting `BERTH_AGENT_DISK_MB`. */
                                agentDiskMb: number | null;
                            };
                            /** @description Null for a key. */
                            session: {
                                id: string;
                                expiresAt: string;
                            } | null;
                            /** @description Those in which the user is a member, by name, 1000 at most. Null for a key, which is of one. */
                            workspaces: {
                                id: string;
                                name: string;
                                /** @enum {string} */
                                role: "owner" | "member" | "viewer";
                            }[] | null;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sessions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "sessions": [
                     *           {
                     *             "id": "0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90",
                     *             "userAgent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/146.0",
                     *             "current": true,
                     *             "createdAt": "2026-11-21T11:40:02.118Z",
                     *             "lastUsedAt": "2026-11-21T11:52:30.004Z",
                     *             "expiresAt": "2026-11-28T11:40:02.116Z"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            sessions: {
                                id: string;
                                /** @description What the browser called itself at the sign-in. */
                                userAgent: string | null;
                                /** @description Whether it is the one that asks. */
                                current: boolean;
                                createdAt: string;
                                /** @description To the minute. */
                                lastUsedAt: string | null;
                                expiresAt: string;
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    moveSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "workspaceId": "0193a1c0-51d2-7c3f-8a04-9d2e61b7f3a5"
                 *     }
                 */
                "application/json": {
                    /** Format: uuid */
                    workspaceId: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90",
                     *         "expiresAt": "2026-11-28T11:40:02.116Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    joinWithSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "invite_Zk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrT"
                 *     }
                 */
                "application/json": {
                    token: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90",
                     *         "expiresAt": "2026-11-28T11:40:02.116Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    revokeSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the session, a UUID. */
                sessionId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    beginPasskeyLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The options. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "challenge": "VZk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYr",
                     *         "timeout": 300000,
                     *         "rpId": "berth.example.com",
                     *         "userVerification": "required"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            challenge: string;
                        } & {
                            [key: string]: unknown;
                        };
                    };
                };
            };
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    loginWithPasskey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "credential": {
                 *         "id": "pH3r0aW1nXyQk8mT5uVbZw",
                 *         "rawId": "pH3r0aW1nXyQk8mT5uVbZw",
                 *         "type": "public-key",
                 *         "clientExtensionResults": {},
                 *         "response": {
                 *           "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoi4oCmIn0",
                 *           "authenticatorData": "SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MdAAAAAg",
                 *           "signature": "MEUCIQDx3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYrAiBk",
                 *           "userHandle": "AZOhsEQQf26NJ8BbnmGj8g"
                 *         }
                 *       },
                 *       "workspaceId": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9"
                 *     }
                 */
                "application/json": {
                    credential: {
                        id: string;
                        rawId: string;
                        /** @constant */
                        type: "public-key";
                        response: {
                            clientDataJSON: string;
                            authenticatorData: string;
                            signature: string;
                            userHandle: string;
                        };
                        /** @default {} */
                        clientExtensionResults?: Record<string, never>;
                    };
                    /**
                     * Format: uuid
                     * @description Where to sign in, for a user of several workspaces. Not given: the one that they used last in a session, or else joined first.
                     */
                    workspaceId?: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90",
                     *         "expiresAt": "2026-11-28T11:40:02.116Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    listPasskeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The passkeys. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "passkeys": [
                     *           {
                     *             "id": "0193a1d4-5e02-7c19-a3d8-2b7f4c6e9d01",
                     *             "name": "Laptop",
                     *             "synced": true,
                     *             "createdAt": "2026-11-21T11:44:30.902Z",
                     *             "lastUsedAt": "2026-11-21T12:05:11.377Z"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            passkeys: {
                                id: string;
                                name: string;
                                /** @description Whether its device shares it with others of its owner. */
                                synced: boolean;
                                createdAt: string;
                                lastUsedAt: string | null;
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createPasskey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Laptop",
                 *       "credential": {
                 *         "id": "pH3r0aW1nXyQk8mT5uVbZw",
                 *         "rawId": "pH3r0aW1nXyQk8mT5uVbZw",
                 *         "type": "public-key",
                 *         "clientExtensionResults": {},
                 *         "response": {
                 *           "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoi4oCmIn0",
                 *           "attestationObject": "o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVik"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": {
                    name: string;
                    credential: {
                        id: string;
                        rawId: string;
                        /** @constant */
                        type: "public-key";
                        response: {
                            clientDataJSON: string;
                            attestationObject: string;
                            transports?: string[];
                        };
                        /** @default {} */
                        clientExtensionResults?: Record<string, never>;
                    };
                };
            };
        };
        responses: {
            /** @description The passkey. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d4-5e02-7c19-a3d8-2b7f4c6e9d01",
                     *         "name": "Laptop",
                     *         "synced": true,
                     *         "createdAt": "2026-11-21T11:44:30.902Z",
                     *         "lastUsedAt": "2026-11-21T12:05:11.377Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            /** @description Whether its device shares it with others of its owner. */
                            synced: boolean;
                            createdAt: string;
                            lastUsedAt: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    beginPasskey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The options. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "challenge": "VZk3vRzA2yq0oM1bJ7kLwPZ8e5t9dXcQfGhUiSnVmYr",
                     *         "rp": {
                     *           "name": "Berth",
                     *           "id": "berth.example.com"
                     *         },
                     *         "user": {
                     *           "id": "AZOhsEQQf26NJ8BbnmGj8g",
                     *           "name": "owner",
                     *           "displayName": "owner"
                     *         },
                     *         "pubKeyCredParams": [
                     *           {
                     *             "type": "public-key",
                     *             "alg": -7
                     *           }
                     *         ],
                     *         "authenticatorSelection": {
                     *           "residentKey": "required",
                     *           "userVerification": "required"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            challenge: string;
                        } & {
                            [key: string]: unknown;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deletePasskey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the passkey, a UUID. */
                passkeyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    renamePasskey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the passkey, a UUID. */
                passkeyId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Laptop"
                 *     }
                 */
                "application/json": {
                    name: string;
                };
            };
        };
        responses: {
            /** @description The passkey as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d4-5e02-7c19-a3d8-2b7f4c6e9d01",
                     *         "name": "Laptop",
                     *         "synced": true,
                     *         "createdAt": "2026-11-21T11:44:30.902Z",
                     *         "lastUsedAt": "2026-11-21T12:05:11.377Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            /** @description Whether its device shares it with others of its owner. */
                            synced: boolean;
                            createdAt: string;
                            lastUsedAt: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    beginOidcLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "workspaceId": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: uuid
                     * @description Where to sign in, for a user of several workspaces. Not given: the one that they used last in a session, or else joined first.
                     */
                    workspaceId?: string;
                    /** @description The token of an invitation: it is accepted by the sign-in. */
                    invitation?: string;
                };
            };
        };
        responses: {
            /** @description Where to go. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "url": "https://id.example.com/auth?client_id=berth&response_type=code&state=login.x1"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description The provider’s page to sign in at. */
                            url: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    loginWithOidc: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "query": "code=Kq3vRzA2yq0o&state=login.x1&iss=https%3A%2F%2Fid.example.com"
                 *     }
                 */
                "application/json": {
                    /** @description What stands behind the `?` of the address to which the provider sent the browser. */
                    query: string;
                };
            };
        };
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d0-7c14-7e90-b2a1-3f5d6c7b8a90",
                     *         "expiresAt": "2026-11-28T11:40:02.116Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            expiresAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listIdentities: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The identities. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "identities": [
                     *           {
                     *             "id": "0193a1d6-0b1f-7e84-9c35-6f2a8d4e7b13",
                     *             "issuer": "https://id.example.com",
                     *             "email": "ada@example.com",
                     *             "createdAt": "2026-11-21T11:48:09.260Z",
                     *             "lastUsedAt": "2026-11-21T12:10:44.018Z"
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            identities: {
                                id: string;
                                /** @description The provider. */
                                issuer: string;
                                /** @description As the provider said when it was linked. */
                                email: string | null;
                                createdAt: string;
                                lastUsedAt: string | null;
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    linkIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "query": "code=Kq3vRzA2yq0o&state=login.x1&iss=https%3A%2F%2Fid.example.com"
                 *     }
                 */
                "application/json": {
                    /** @description What stands behind the `?` of the address to which the provider sent the browser. */
                    query: string;
                };
            };
        };
        responses: {
            /** @description The identity. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d6-0b1f-7e84-9c35-6f2a8d4e7b13",
                     *         "issuer": "https://id.example.com",
                     *         "email": "ada@example.com",
                     *         "createdAt": "2026-11-21T11:48:09.260Z",
                     *         "lastUsedAt": "2026-11-21T12:10:44.018Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @description The provider. */
                            issuer: string;
                            /** @description As the provider said when it was linked. */
                            email: string | null;
                            createdAt: string;
                            lastUsedAt: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    beginIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Where to go. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "url": "https://id.example.com/auth?client_id=berth&response_type=code&state=login.x1"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description The provider’s page to sign in at. */
                            url: string;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    unlinkIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the identity, a UUID. */
                identityId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    sendFeedback: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "message": "The log of an agent could be longer."
                 *     }
                 */
                "application/json": {
                    message: string;
                };
            };
        };
        responses: {
            /** @description It is kept. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of webhooks, newest first, without their secrets. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "webhooks": [
                     *           {
                     *             "id": "0193a1d4-6f20-7c18-b3a9-51e0d7c2f846",
                     *             "url": "https://hooks.example.com/berth",
                     *             "events": [
                     *               "pin.*",
                     *               "agent.error"
                     *             ],
                     *             "agentId": null,
                     *             "groupId": null,
                     *             "enabled": true,
                     *             "disabledReason": null,
                     *             "failingSince": null,
                     *             "createdAt": "2026-11-25T09:14:03.120Z",
                     *             "updatedAt": "2026-11-25T09:14:03.120Z"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            webhooks: {
                                id: string;
                                url: string;
                                events: string[];
                                agentId: string | null;
                                groupId: string | null;
                                enabled: boolean;
                                /** @description `client`: by a request. `failing`: nothing was taken for five days. `gone`: the target answered 410. `behind`: 100,000 deliveries waited. */
                                disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                                /** @description When the first attempt failed since the last one that did not. */
                                failingSince: string | null;
                                createdAt: string;
                                updatedAt: string;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://hooks.example.com/berth",
                 *       "events": [
                 *         "pin.*",
                 *         "agent.error"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** Format: webhook-url */
                    url: string;
                    events: ("*" | "file.*" | "pin.*" | "quota.*" | "swap.*" | "group.*" | "agent.*" | "snapshot.*" | "domain.*" | "channel.*" | "task.*" | "operation.*" | "key.*" | "member.*" | "invitation.*" | "disk.*" | "webhook.*" | "file.created" | "file.updated" | "file.deleted" | "pin.retrieving" | "pin.pinned" | "pin.failed" | "quota.reached" | "swap.created" | "group.created" | "group.updated" | "group.deleted" | "agent.created" | "agent.starting" | "agent.running" | "agent.error" | "agent.stopped" | "agent.deleted" | "snapshot.created" | "domain.verified" | "domain.failed" | "channel.created" | "channel.updated" | "channel.deleted" | "task.ran" | "operation.progress" | "key.created" | "key.revoked" | "member.added" | "member.updated" | "member.removed" | "invitation.created" | "invitation.accepted" | "invitation.revoked" | "disk.low" | "webhook.disabled")[];
                    /**
                     * @description Only events about this agent.
                     * @default null
                     */
                    agentId?: string | null;
                    /**
                     * @description Only events about this group and its files.
                     * @default null
                     */
                    groupId?: string | null;
                };
            };
        };
        responses: {
            /** @description The webhook, with the secret that signs its deliveries. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d4-6f20-7c18-b3a9-51e0d7c2f846",
                     *         "url": "https://hooks.example.com/berth",
                     *         "events": [
                     *           "pin.*",
                     *           "agent.error"
                     *         ],
                     *         "agentId": null,
                     *         "groupId": null,
                     *         "enabled": true,
                     *         "disabledReason": null,
                     *         "failingSince": null,
                     *         "createdAt": "2026-11-25T09:14:03.120Z",
                     *         "updatedAt": "2026-11-25T09:14:03.120Z",
                     *         "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDtpFCLcFMaZM="
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            url: string;
                            events: string[];
                            agentId: string | null;
                            groupId: string | null;
                            enabled: boolean;
                            /** @description `client`: by a request. `failing`: nothing was taken for five days. `gone`: the target answered 410. `behind`: 100,000 deliveries waited. */
                            disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                            /** @description When the first attempt failed since the last one that did not. */
                            failingSince: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @description Shown this once. */
                            secret: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d4-6f20-7c18-b3a9-51e0d7c2f846",
                     *         "url": "https://hooks.example.com/berth",
                     *         "events": [
                     *           "pin.*",
                     *           "agent.error"
                     *         ],
                     *         "agentId": null,
                     *         "groupId": null,
                     *         "enabled": true,
                     *         "disabledReason": null,
                     *         "failingSince": null,
                     *         "createdAt": "2026-11-25T09:14:03.120Z",
                     *         "updatedAt": "2026-11-25T09:14:03.120Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            url: string;
                            events: string[];
                            agentId: string | null;
                            groupId: string | null;
                            enabled: boolean;
                            /** @description `client`: by a request. `failing`: nothing was taken for five days. `gone`: the target answered 410. `behind`: 100,000 deliveries waited. */
                            disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                            /** @description When the first attempt failed since the last one that did not. */
                            failingSince: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": null
                     *     }
                     */
                    "application/json": {
                        data: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "events": [
                 *         "*"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** Format: webhook-url */
                    url?: string;
                    events?: ("*" | "file.*" | "pin.*" | "quota.*" | "swap.*" | "group.*" | "agent.*" | "snapshot.*" | "domain.*" | "channel.*" | "task.*" | "operation.*" | "key.*" | "member.*" | "invitation.*" | "disk.*" | "webhook.*" | "file.created" | "file.updated" | "file.deleted" | "pin.retrieving" | "pin.pinned" | "pin.failed" | "quota.reached" | "swap.created" | "group.created" | "group.updated" | "group.deleted" | "agent.created" | "agent.starting" | "agent.running" | "agent.error" | "agent.stopped" | "agent.deleted" | "snapshot.created" | "domain.verified" | "domain.failed" | "channel.created" | "channel.updated" | "channel.deleted" | "task.ran" | "operation.progress" | "key.created" | "key.revoked" | "member.added" | "member.updated" | "member.removed" | "invitation.created" | "invitation.accepted" | "invitation.revoked" | "disk.low" | "webhook.disabled")[];
                    agentId?: string | null;
                    groupId?: string | null;
                    enabled?: boolean;
                } | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d4-6f20-7c18-b3a9-51e0d7c2f846",
                     *         "url": "https://hooks.example.com/berth",
                     *         "events": [
                     *           "*"
                     *         ],
                     *         "agentId": null,
                     *         "groupId": null,
                     *         "enabled": true,
                     *         "disabledReason": null,
                     *         "failingSince": null,
                     *         "createdAt": "2026-11-25T09:14:03.120Z",
                     *         "updatedAt": "2026-11-25T09:14:03.120Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            url: string;
                            events: string[];
                            agentId: string | null;
                            groupId: string | null;
                            enabled: boolean;
                            /** @description `client`: by a request. `failing`: nothing was taken for five days. `gone`: the target answered 410. `behind`: 100,000 deliveries waited. */
                            disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                            /** @description When the first attempt failed since the last one that did not. */
                            failingSince: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook, with its new secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d4-6f20-7c18-b3a9-51e0d7c2f846",
                     *         "url": "https://hooks.example.com/berth",
                     *         "events": [
                     *           "pin.*",
                     *           "agent.error"
                     *         ],
                     *         "agentId": null,
                     *         "groupId": null,
                     *         "enabled": true,
                     *         "disabledReason": null,
                     *         "failingSince": null,
                     *         "createdAt": "2026-11-25T09:14:03.120Z",
                     *         "updatedAt": "2026-11-25T09:14:03.120Z",
                     *         "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDtpFCLcFMaZM="
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            url: string;
                            events: string[];
                            agentId: string | null;
                            groupId: string | null;
                            enabled: boolean;
                            /** @description `client`: by a request. `failing`: nothing was taken for five days. `gone`: the target answered 410. `behind`: 100,000 deliveries waited. */
                            disabledReason: ("client" | "failing" | "gone" | "behind") | null;
                            /** @description When the first attempt failed since the last one that did not. */
                            failingSince: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @description Shown this once. */
                            secret: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d5-0b7c-7a41-9c62-e8f4a1d03b57",
                     *         "type": "webhook.test",
                     *         "state": "pending",
                     *         "attempts": 0,
                     *         "createdAt": "2026-11-25T09:15:40.008Z",
                     *         "lastAttemptAt": null,
                     *         "nextAttemptAt": "2026-11-25T09:15:40.008Z",
                     *         "endedAt": null,
                     *         "status": null,
                     *         "response": null,
                     *         "error": null,
                     *         "body": "{\"id\":\"0193a1d5-0b7c-7a41-9c62-e8f4a1d03b57\",\"type\":\"webhook.test\",\"createdAt\":\"2026-11-25T09:15:40.008Z\",\"workspaceId\":\"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9\",\"resource\":{\"type\":\"webhook\",\"id\":\"0193a1d4-6f20-7c18-b3a9-51e0d7c2f846\"},\"data\":{}}"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description `webhook-id` is this behind `msg_`, in each attempt. */
                            id: string;
                            type: string;
                            /** @enum {string} */
                            state: "pending" | "delivered" | "failed";
                            attempts: number;
                            createdAt: string;
                            lastAttemptAt: string | null;
                            nextAttemptAt: string | null;
                            endedAt: string | null;
                            /** @description Of the last answer; null where there was none. */
                            status: number | null;
                            /** @description The beginning of the last answer. */
                            response: string | null;
                            /** @description Why the last attempt failed. */
                            error: string | null;
                            /** @description What is sent. */
                            body: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Only operations in this state. */
                state?: "pending" | "delivered" | "failed";
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "deliveries": [
                     *           {
                     *             "id": "0193a1d5-0b7c-7a41-9c62-e8f4a1d03b57",
                     *             "type": "pin.pinned",
                     *             "state": "delivered",
                     *             "attempts": 1,
                     *             "createdAt": "2026-11-25T09:15:40.008Z",
                     *             "lastAttemptAt": "2026-11-25T09:15:40.061Z",
                     *             "nextAttemptAt": null,
                     *             "endedAt": "2026-11-25T09:15:40.061Z",
                     *             "status": 204,
                     *             "response": "",
                     *             "error": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            deliveries: {
                                /** @description `webhook-id` is this behind `msg_`, in each attempt. */
                                id: string;
                                type: string;
                                /** @enum {string} */
                                state: "pending" | "delivered" | "failed";
                                attempts: number;
                                createdAt: string;
                                lastAttemptAt: string | null;
                                nextAttemptAt: string | null;
                                endedAt: string | null;
                                /** @description Of the last answer; null where there was none. */
                                status: number | null;
                                /** @description The beginning of the last answer. */
                                response: string | null;
                                /** @description Why the last attempt failed. */
                                error: string | null;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description The id of the delivery, a UUID. */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d5-0b7c-7a41-9c62-e8f4a1d03b57",
                     *         "type": "pin.pinned",
                     *         "state": "delivered",
                     *         "attempts": 1,
                     *         "createdAt": "2026-11-25T09:15:40.008Z",
                     *         "lastAttemptAt": "2026-11-25T09:15:40.061Z",
                     *         "nextAttemptAt": null,
                     *         "endedAt": "2026-11-25T09:15:40.061Z",
                     *         "status": 204,
                     *         "response": "",
                     *         "error": null,
                     *         "body": "{\"id\":\"1806834901245952\",\"type\":\"pin.pinned\",\"createdAt\":\"2026-11-25T09:15:39.990Z\",\"workspaceId\":\"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9\",\"resource\":{\"type\":\"file\",\"id\":\"0193a1d4-f3b0-7d55-8a21-90c6b7e4d312\"},\"data\":{\"network\":\"public\",\"cid\":\"bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e\",\"name\":\"report.pdf\",\"status\":\"pinned\",\"size\":48213,\"mimeType\":\"application/pdf\",\"groupId\":null}}"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description `webhook-id` is this behind `msg_`, in each attempt. */
                            id: string;
                            type: string;
                            /** @enum {string} */
                            state: "pending" | "delivered" | "failed";
                            attempts: number;
                            createdAt: string;
                            lastAttemptAt: string | null;
                            nextAttemptAt: string | null;
                            endedAt: string | null;
                            /** @description Of the last answer; null where there was none. */
                            status: number | null;
                            /** @description The beginning of the last answer. */
                            response: string | null;
                            /** @description Why the last attempt failed. */
                            error: string | null;
                            /** @description What is sent. */
                            body: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    redeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
                /** @description The id of the delivery, a UUID. */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1d5-0b7c-7a41-9c62-e8f4a1d03b57",
                     *         "type": "pin.pinned",
                     *         "state": "pending",
                     *         "attempts": 0,
                     *         "createdAt": "2026-11-25T09:15:40.008Z",
                     *         "lastAttemptAt": null,
                     *         "nextAttemptAt": "2026-11-25T09:15:40.008Z",
                     *         "endedAt": null,
                     *         "status": null,
                     *         "response": null,
                     *         "error": null,
                     *         "body": "{\"id\":\"1806834901245952\",\"type\":\"pin.pinned\",\"createdAt\":\"2026-11-25T09:15:39.990Z\",\"workspaceId\":\"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9\",\"resource\":{\"type\":\"file\",\"id\":\"0193a1d4-f3b0-7d55-8a21-90c6b7e4d312\"},\"data\":{\"network\":\"public\",\"cid\":\"bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e\",\"name\":\"report.pdf\",\"status\":\"pinned\",\"size\":48213,\"mimeType\":\"application/pdf\",\"groupId\":null}}"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description `webhook-id` is this behind `msg_`, in each attempt. */
                            id: string;
                            type: string;
                            /** @enum {string} */
                            state: "pending" | "delivered" | "failed";
                            attempts: number;
                            createdAt: string;
                            lastAttemptAt: string | null;
                            nextAttemptAt: string | null;
                            endedAt: string | null;
                            /** @description Of the last answer; null where there was none. */
                            status: number | null;
                            /** @description The beginning of the last answer. */
                            response: string | null;
                            /** @description Why the last attempt failed. */
                            error: string | null;
                            /** @description What is sent. */
                            body: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listPlans: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plans. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "plans": [
                     *           {
                     *             "name": "pro",
                     *             "agentLimit": 20,
                     *             "secretLimit": 500,
                     *             "channels": true,
                     *             "customDomains": true,
                     *             "pinByCid": true,
                     *             "hotSwaps": true,
                     *             "maxFileBytes": 26843545600,
                     *             "storageBytes": 1099511627776,
                     *             "requestsPerMinute": 600,
                     *             "agentDiskMb": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            plans: {
                                name: string;
                                agentLimit: number | null;
                                secretLimit: number | null;
                                channels: boolean;
                                customDomains: boolean;
                                pinByCid: boolean;
                                hotSwaps: boolean;
                                maxFileBytes: number | null;
                                storageBytes: number | null;
                                requestsPerMinute: number | null;
                                /** @description `null` is the setting `BERTH_AGENT_DISK_MB`. */
                                agentDiskMb: number | null;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAllWorkspaces: {
        parameters: {
            query?: {
                /** @description Only the workspace of this name. */
                name?: string;
                /** @description Only workspaces on this plan. */
                plan?: string;
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of workspaces, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "workspaces": [
                     *           {
                     *             "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *             "name": "catalogues",
                     *             "plan": "pro",
                     *             "createdAt": "2026-11-21T10:30:51.204Z",
                     *             "usage": {
                     *               "files": 128,
                     *               "bytes": 734003200,
                     *               "agents": 3
                     *             }
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            workspaces: {
                                id: string;
                                name: string;
                                plan: string;
                                createdAt: string;
                                usage: {
                                    files: number;
                                    /** @description Of content, on both networks. */
                                    bytes: number;
                                    /** @description 1000 stands for that many or more. */
                                    agents: number;
                                };
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "catalogues",
                 *       "plan": "pro",
                 *       "owner": "Ada"
                 *     }
                 */
                "application/json": {
                    name: string;
                    /** @default free */
                    plan?: string;
                    /** @description The name of a user; made where there is none. */
                    owner: string;
                };
            };
        };
        responses: {
            /** @description The workspace, with the token of the key. It is shown this once. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "plan": "pro",
                     *         "createdAt": "2026-11-21T10:30:51.204Z",
                     *         "usage": {
                     *           "files": 0,
                     *           "bytes": 0,
                     *           "agents": 0
                     *         },
                     *         "token": "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFhZiJ9.c2lnbmF0dXJl"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            plan: string;
                            createdAt: string;
                            usage: {
                                files: number;
                                /** @description Of content, on both networks. */
                                bytes: number;
                                /** @description 1000 stands for that many or more. */
                                agents: number;
                            };
                            token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getAnyWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "plan": "pro",
                     *         "createdAt": "2026-11-21T10:30:51.204Z",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200,
                     *           "agents": 3
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            plan: string;
                            createdAt: string;
                            usage: {
                                files: number;
                                /** @description Of content, on both networks. */
                                bytes: number;
                                /** @description 1000 stands for that many or more. */
                                agents: number;
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeWorkspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "pro"
                 *     }
                 */
                "application/json": {
                    name?: string;
                    plan?: string;
                } | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The workspace as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *         "name": "catalogues",
                     *         "plan": "pro",
                     *         "createdAt": "2026-11-21T10:30:51.204Z",
                     *         "usage": {
                     *           "files": 128,
                     *           "bytes": 734003200,
                     *           "agents": 3
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            name: string;
                            plan: string;
                            createdAt: string;
                            usage: {
                                files: number;
                                /** @description Of content, on both networks. */
                                bytes: number;
                                /** @description 1000 stands for that many or more. */
                                agents: number;
                            };
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getInstanceUsage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sums. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "networks": {
                     *           "public": {
                     *             "files": 4096,
                     *             "bytes": 21474836480
                     *           },
                     *           "private": {
                     *             "files": 512,
                     *             "bytes": 1073741824
                     *           }
                     *         },
                     *         "agents": {
                     *           "starting": 0,
                     *           "running": 12,
                     *           "not_running": 3
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            networks: {
                                public: {
                                    files: number;
                                    bytes: number;
                                };
                                private: {
                                    files: number;
                                    bytes: number;
                                };
                            };
                            /** @description 10000 stands for that many or more. */
                            agents: {
                                starting: number;
                                running: number;
                                not_running: number;
                            };
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getInstanceHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The parts. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "status": "degraded",
                     *         "parts": [
                     *           {
                     *             "name": "database",
                     *             "status": "ok"
                     *           },
                     *           {
                     *             "name": "workers",
                     *             "status": "down",
                     *             "detail": "no worker process is running",
                     *             "advice": "Run `npm start`, or `node src/main.ts worker`."
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @enum {string} */
                            status: "ok" | "degraded" | "down";
                            parts: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                                name: string;
                                /** @description What the part said itself. */
                                cause?: string;
                                /** @description What to do. */
                                advice?: string;
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listQueues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All queues. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "queues": [
                     *           {
                     *             "name": "pins",
                     *             "queued": 3,
                     *             "running": 12,
                     *             "oldestSeconds": 0.8,
                     *             "slots": 64
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            queues: {
                                /** @enum {string} */
                                name: "pins" | "repairs" | "storage" | "agents" | "workspaces" | "webhooks";
                                /** @description 10000 of a kind stand for that many or more. */
                                queued: number;
                                running: number;
                                /** @description Age of the oldest one that waits for its first attempt; null where none does. */
                                oldestSeconds: number | null;
                                /** @description How many the live workers run side by side; 0 where none serves it. */
                                slots: number;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listWorkers: {
        parameters: {
            query?: {
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of workers, in the order in which they started. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "workers": [
                     *           {
                     *             "id": "0193a1ad-6c31-7b0e-9f42-8d17c5a0e6b3",
                     *             "version": "0.4.0",
                     *             "isAlive": true,
                     *             "startedAt": "2026-11-21T10:20:04.771Z",
                     *             "seenAt": "2026-11-21T11:42:09.310Z",
                     *             "slots": {
                     *               "pins": 64,
                     *               "agents": 4
                     *             },
                     *             "parts": {
                     *               "database": {
                     *                 "status": "ok"
                     *               },
                     *               "disk": {
                     *                 "status": "ok",
                     *                 "detail": "84 GB free of 128 GB"
                     *               }
                     *             }
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            workers: {
                                id: string;
                                /** @description Of Berth; null where it is older than this field. */
                                version: string | null;
                                /** @description Whether it was heard of within 15 seconds. */
                                isAlive: boolean;
                                startedAt: string;
                                seenAt: string;
                                /** @description Operations of each queue that it runs side by side. */
                                slots: {
                                    [key: string]: number;
                                };
                                /** @description As its own `/readyz` has them. */
                                parts: {
                                    [key: string]: {
                                        /** @enum {string} */
                                        status: "ok" | "degraded" | "down";
                                        detail?: string;
                                    };
                                };
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description Only what this user did. */
                userId?: string;
                /** @description Only what was done with this API key. */
                keyId?: string;
                /**
                 * @description Only what this agent did with a token of its own.
                 * @example x7f3k2ab
                 */
                agentId?: string;
                /** @description Only this action: the id of a route in this document, `signIn`, or `refusals`: all of a minute that have no entry of their own. */
                action?: string;
                /** @description Only this resource and its parts: `agents/x7f3k2ab` has `agents/x7f3k2ab/secrets/…`. */
                resource?: string;
                /** @description Only what was done, or only what was refused or failed, or only that of which it is not known. */
                result?: "done" | "refused" | "unknown";
                /** @description Only entries from this time on. */
                from?: string;
                /** @description Only entries before this time. */
                to?: string;
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "entries": [
                     *           {
                     *             "id": "0193a1d0-8a3e-7b52-9c64-e1f70b2d9a58",
                     *             "createdAt": "2026-11-21T11:10:22.718Z",
                     *             "workspaceId": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *             "via": "key",
                     *             "user": {
                     *               "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *               "name": "Ada"
                     *             },
                     *             "keyId": "0193a1bf-7e33-7f08-b2c1-94a5d6e7f801",
                     *             "agentId": null,
                     *             "action": "createSecret",
                     *             "method": "POST",
                     *             "route": "/v0/secrets",
                     *             "resource": "secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26",
                     *             "status": 201,
                     *             "errorCode": null,
                     *             "requestId": "5f3d0c9be84d4c5f8e1d7a92b06c3f41",
                     *             "address": "203.0.113.20",
                     *             "userAgent": "curl/8.5.0"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            entries: {
                                id: string;
                                createdAt: string;
                                /** @description Null for what is of no workspace. */
                                workspaceId: string | null;
                                /**
                                 * @description The credential: an API key, a session of the dashboard, a token of an agent, a signed address, a login link or an invitation, none, or `npx berth`.
                                 * @enum {string}
                                 */
                                via: "key" | "session" | "gateway" | "platform" | "link" | "nobody" | "terminal";
                                user: {
                                    id: string;
                                    name: string | null;
                                } | null;
                                keyId: string | null;
                                /** @description The agent whose token it was. */
                                agentId: string | null;
                                action: string;
                                method: string | null;
                                /** @description The pattern of the path. */
                                route: string | null;
                                resource: string;
                                /** @description Of HTTP; 499 where the client had gone; null for a command. */
                                status: number | null;
                                /** @description Null where it was done; `unknown` while a request is under way, and for good where its process died meanwhile. */
                                errorCode: string | null;
                                requestId: string | null;
                                address: string | null;
                                userAgent: string | null;
                            }[];
                            next_page_token: string;
                        };
                    };
                    /** @example {"id":"0193a1d0-8a3e-7b52-9c64-e1f70b2d9a58","createdAt":"2026-11-21T11:10:22.718Z","workspaceId":"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9","via":"key","user":{"id":"0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60","name":"Ada"},"keyId":"0193a1bf-7e33-7f08-b2c1-94a5d6e7f801","agentId":null,"action":"createSecret","method":"POST","route":"/v0/secrets","resource":"secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26","status":201,"errorCode":null,"requestId":"5f3d0c9be84d4c5f8e1d7a92b06c3f41","address":"203.0.113.20","userAgent":"curl/8.5.0"} */
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listInstanceAudit: {
        parameters: {
            query?: {
                /** @description Only what this user did. */
                userId?: string;
                /** @description Only what was done with this API key. */
                keyId?: string;
                /**
                 * @description Only what this agent did with a token of its own.
                 * @example x7f3k2ab
                 */
                agentId?: string;
                /** @description Only this action: the id of a route in this document, `signIn`, or `refusals`: all of a minute that have no entry of their own. */
                action?: string;
                /** @description Only this resource and its parts: `agents/x7f3k2ab` has `agents/x7f3k2ab/secrets/…`. */
                resource?: string;
                /** @description Only what was done, or only what was refused or failed, or only that of which it is not known. */
                result?: "done" | "refused" | "unknown";
                /** @description Only entries from this time on. */
                from?: string;
                /** @description Only entries before this time. */
                to?: string;
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
                /** @description Only of this workspace. */
                workspaceId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "entries": [
                     *           {
                     *             "id": "0193a1d0-8a3e-7b52-9c64-e1f70b2d9a58",
                     *             "createdAt": "2026-11-21T11:10:22.718Z",
                     *             "workspaceId": "0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9",
                     *             "via": "key",
                     *             "user": {
                     *               "id": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *               "name": "Ada"
                     *             },
                     *             "keyId": "0193a1bf-7e33-7f08-b2c1-94a5d6e7f801",
                     *             "agentId": null,
                     *             "action": "createSecret",
                     *             "method": "POST",
                     *             "route": "/v0/secrets",
                     *             "resource": "secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26",
                     *             "status": 201,
                     *             "errorCode": null,
                     *             "requestId": "5f3d0c9be84d4c5f8e1d7a92b06c3f41",
                     *             "address": "203.0.113.20",
                     *             "userAgent": "curl/8.5.0"
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            entries: {
                                id: string;
                                createdAt: string;
                                /** @description Null for what is of no workspace. */
                                workspaceId: string | null;
                                /**
                                 * @description The credential: an API key, a session of the dashboard, a token of an agent, a signed address, a login link or an invitation, none, or `npx berth`.
                                 * @enum {string}
                                 */
                                via: "key" | "session" | "gateway" | "platform" | "link" | "nobody" | "terminal";
                                user: {
                                    id: string;
                                    name: string | null;
                                } | null;
                                keyId: string | null;
                                /** @description The agent whose token it was. */
                                agentId: string | null;
                                action: string;
                                method: string | null;
                                /** @description The pattern of the path. */
                                route: string | null;
                                resource: string;
                                /** @description Of HTTP; 499 where the client had gone; null for a command. */
                                status: number | null;
                                /** @description Null where it was done; `unknown` while a request is under way, and for good where its process died meanwhile. */
                                errorCode: string | null;
                                requestId: string | null;
                                address: string | null;
                                userAgent: string | null;
                            }[];
                            next_page_token: string;
                        };
                    };
                    /** @example {"id":"0193a1d0-8a3e-7b52-9c64-e1f70b2d9a58","createdAt":"2026-11-21T11:10:22.718Z","workspaceId":"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9","via":"key","user":{"id":"0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60","name":"Ada"},"keyId":"0193a1bf-7e33-7f08-b2c1-94a5d6e7f801","agentId":null,"action":"createSecret","method":"POST","route":"/v0/secrets","resource":"secrets/0193a1d0-8a3c-7d6f-8e15-3b4a9c0d7f26","status":201,"errorCode":null,"requestId":"5f3d0c9be84d4c5f8e1d7a92b06c3f41","address":"203.0.113.20","userAgent":"curl/8.5.0"} */
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listOperations: {
        parameters: {
            query?: {
                /** @description Only operations in this state. */
                state?: "queued" | "running" | "succeeded" | "failed" | "canceled";
                /** @description Only operations of this kind. */
                kind?: "pin.add" | "pin.repair" | "pin.remove" | "content.release" | "agent.provision" | "agent.restart" | "agent.scripts" | "agent.sync" | "agent.reset" | "agent.push" | "agent.skills" | "agent.delete" | "webhook.deliver";
                /** @description Only operations on this file or agent. */
                target?: string | unknown;
                /** @description By age: `ASC` oldest first, `DESC` newest first. */
                order?: "ASC" | "DESC";
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of operations. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "operations": [
                     *           {
                     *             "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *             "kind": "pin.add",
                     *             "target": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *             "target_name": "catalogue.pdf",
                     *             "state": "running",
                     *             "step": "retrieving",
                     *             "progress": {
                     *               "blocks": 112,
                     *               "bytes": 29360128,
                     *               "total_bytes": 52431991
                     *             },
                     *             "attempts": 1,
                     *             "error": null,
                     *             "error_code": null,
                     *             "created_at": "2026-11-21T10:58:03.485934Z",
                     *             "started_at": "2026-11-21T10:58:03.502417Z",
                     *             "next_attempt_at": null,
                     *             "finished_at": null
                     *           }
                     *         ],
                     *         "next_page_token": ""
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            operations: {
                                id: string;
                                /** @enum {string} */
                                kind: "pin.add" | "pin.repair" | "pin.remove" | "content.release" | "agent.provision" | "agent.restart" | "agent.scripts" | "agent.sync" | "agent.reset" | "agent.push" | "agent.skills" | "agent.delete" | "webhook.deliver";
                                /** @description The id of what it works on: a file or an agent. */
                                target: string;
                                /** @description The name of that file or agent; of a file without a name, its CID. Null if it is gone. */
                                target_name: string | null;
                                /** @enum {string} */
                                state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                                /** @description What it is doing, or was doing when it ended. */
                                step: string | null;
                                progress: {
                                    [key: string]: unknown;
                                } | null;
                                attempts: number;
                                error: string | null;
                                /** @description Why it failed, or why its last attempt did. */
                                error_code: string | null;
                                created_at: string;
                                started_at: string | null;
                                /** @description When a queued operation is due. */
                                next_attempt_at: string | null;
                                finished_at: string | null;
                            }[];
                            next_page_token: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getOperation: {
        parameters: {
            query?: {
                /** @description Answers when the operation has ended, or after this many seconds (at most 300). */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "kind": "pin.add",
                     *         "target": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "target_name": "catalogue.pdf",
                     *         "state": "succeeded",
                     *         "step": "retrieving",
                     *         "progress": {
                     *           "blocks": 205,
                     *           "bytes": 52431991,
                     *           "total_bytes": 52431991
                     *         },
                     *         "attempts": 1,
                     *         "error": null,
                     *         "error_code": null,
                     *         "created_at": "2026-11-21T10:58:03.485934Z",
                     *         "started_at": "2026-11-21T10:58:03.502417Z",
                     *         "next_attempt_at": null,
                     *         "finished_at": "2026-11-21T10:58:09.118250Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @enum {string} */
                            kind: "pin.add" | "pin.repair" | "pin.remove" | "content.release" | "agent.provision" | "agent.restart" | "agent.scripts" | "agent.sync" | "agent.reset" | "agent.push" | "agent.skills" | "agent.delete" | "webhook.deliver";
                            /** @description The id of what it works on: a file or an agent. */
                            target: string;
                            /** @description The name of that file or agent; of a file without a name, its CID. Null if it is gone. */
                            target_name: string | null;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                            /** @description What it is doing, or was doing when it ended. */
                            step: string | null;
                            progress: {
                                [key: string]: unknown;
                            } | null;
                            attempts: number;
                            error: string | null;
                            /** @description Why it failed, or why its last attempt did. */
                            error_code: string | null;
                            created_at: string;
                            started_at: string | null;
                            /** @description When a queued operation is due. */
                            next_attempt_at: string | null;
                            finished_at: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    cancelOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation, cancelled or about to be. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "kind": "pin.add",
                     *         "target": "0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7",
                     *         "target_name": "catalogue.pdf",
                     *         "state": "canceled",
                     *         "step": "retrieving",
                     *         "progress": {
                     *           "blocks": 112,
                     *           "bytes": 29360128,
                     *           "total_bytes": 52431991
                     *         },
                     *         "attempts": 1,
                     *         "error": null,
                     *         "error_code": null,
                     *         "created_at": "2026-11-21T10:58:03.485934Z",
                     *         "started_at": "2026-11-21T10:58:03.502417Z",
                     *         "next_attempt_at": null,
                     *         "finished_at": "2026-11-21T10:58:04.270655Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            id: string;
                            /** @enum {string} */
                            kind: "pin.add" | "pin.repair" | "pin.remove" | "content.release" | "agent.provision" | "agent.restart" | "agent.scripts" | "agent.sync" | "agent.reset" | "agent.push" | "agent.skills" | "agent.delete" | "webhook.deliver";
                            /** @description The id of what it works on: a file or an agent. */
                            target: string;
                            /** @description The name of that file or agent; of a file without a name, its CID. Null if it is gone. */
                            target_name: string | null;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                            /** @description What it is doing, or was doing when it ended. */
                            step: string | null;
                            progress: {
                                [key: string]: unknown;
                            } | null;
                            attempts: number;
                            error: string | null;
                            /** @description Why it failed, or why its last attempt did. */
                            error_code: string | null;
                            created_at: string;
                            started_at: string | null;
                            /** @description When a queued operation is due. */
                            next_attempt_at: string | null;
                            finished_at: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    streamOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, each with an operation as its data. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: operation
                     *     id: 7
                     *     data: {"id":"0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41","kind":"pin.add","target":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","target_name":"catalogue.pdf","state":"running","step":"retrieving","progress":{"blocks":112,"bytes":29360128,"total_bytes":52431991},"attempts":1,"error":null,"error_code":null,"created_at":"2026-11-21T10:58:03.485934Z","started_at":"2026-11-21T10:58:03.502417Z","next_attempt_at":null,"finished_at":null}
                     *
                     *     event: operation
                     *     id: 8
                     *     data: {"id":"0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41","kind":"pin.add","target":"0193a1c4-7d2b-7c40-8a1f-52d9e0b4c6f7","target_name":"catalogue.pdf","state":"succeeded","step":"retrieving","progress":{"blocks":205,"bytes":52431991,"total_bytes":52431991},"attempts":1,"error":null,"error_code":null,"created_at":"2026-11-21T10:58:03.485934Z","started_at":"2026-11-21T10:58:03.502417Z","next_attempt_at":null,"finished_at":"2026-11-21T10:58:09.118250Z"}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    restartAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "version": "2026.9.6"
                 *     }
                 */
                "application/json": {
                    version?: string | null;
                } | null;
            };
        };
        responses: {
            /** @description It runs again. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Agent x7f3k2ab restarted",
                     *       "previousProcessId": "31"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description Of the gateway, as its system numbers it. */
                        previousProcessId: string | null;
                    };
                };
            };
            /** @description It is being restarted. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Agent x7f3k2ab is being restarted",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    retryScripts: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description They run. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Scripts launched"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            /** @description They wait for what is under way. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Scripts are being launched",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentVersions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "engine": "openclaw",
                     *       "currentVersion": "2026.9.5",
                     *       "availableVersions": [
                     *         "2026.9.6",
                     *         "2026.9.5"
                     *       ],
                     *       "availableVersionsPerEngine": {
                     *         "openclaw": [
                     *           "2026.9.6",
                     *           "2026.9.5"
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @description The newest first. */
                        availableVersions: string[];
                        availableVersionsPerEngine: {
                            [key: string]: string[];
                        };
                        engine: string;
                        currentVersion: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getAgentUpdate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "currentVersion": "2026.9.5",
                     *       "latestVersion": "2026.9.6",
                     *       "updateAvailable": true
                     *     }
                     */
                    "application/json": {
                        currentVersion: string;
                        latestVersion: string;
                        updateAvailable: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "tag": "latest"
                 *     }
                 */
                "application/json": {
                    /** @description `latest`, or a version. */
                    tag?: string | null;
                } | null;
            };
        };
        responses: {
            /** @description It runs on that version. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "previousVersion": "2026.9.5",
                     *       "newVersion": "2026.9.6",
                     *       "output": "Restarted on 2026.9.6"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        previousVersion: string;
                        newVersion: string;
                        output: string;
                    };
                };
            };
            /** @description It is being restarted. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "previousVersion": "2026.9.5",
                     *       "newVersion": "2026.9.6",
                     *       "output": "Restarting on 2026.9.6",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        previousVersion: string;
                        newVersion: string;
                        output: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listEngines: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The engines. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "engines": [
                     *         {
                     *           "id": "openclaw",
                     *           "label": "OpenClaw"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        engines: {
                            id: string;
                            label: string;
                        }[];
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listEngineVersions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "availableVersions": [
                     *         "2026.9.6",
                     *         "2026.9.5"
                     *       ],
                     *       "availableVersionsPerEngine": {
                     *         "openclaw": [
                     *           "2026.9.6",
                     *           "2026.9.5"
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @description The newest first. */
                        availableVersions: string[];
                        availableVersionsPerEngine: {
                            [key: string]: string[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    findModels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The models. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "hasDefault": false,
                     *         "local": [
                     *           {
                     *             "server": "ollama",
                     *             "name": "Ollama",
                     *             "models": [
                     *               "qwen3:8b",
                     *               "llama3.2:3b"
                     *             ]
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @description Whether the operator has set a model (`BERTH_MODEL_URL`), which agents use unless they have another. */
                            hasDefault: boolean;
                            /** @description Servers that were found on the machine of the agents, with their models. Empty where agents cannot reach it. */
                            local: {
                                /** @enum {string} */
                                server: "ollama" | "lm-studio" | "llama.cpp";
                                name: string;
                                models: string[];
                            }[];
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentUsage: {
        parameters: {
            query?: {
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the agents of the workspace use. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "usage": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "at": "2026-11-21T11:12:33.120Z",
                     *           "memoryBytes": 702545920,
                     *           "memoryLimitBytes": 2147483648
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        usage: {
                            agentId: string;
                            /** @description When it was read. */
                            at: string;
                            memoryBytes: number;
                            /** @description Null where the agent has no limit of its own: as a process. */
                            memoryLimitBytes: number | null;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readAgentUsage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What it uses. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "memoryLimitBytes": 2147483648,
                     *       "disk": {
                     *         "usedBytes": 14155776,
                     *         "limitBytes": 10737418240
                     *       },
                     *       "samples": [
                     *         {
                     *           "at": "2026-11-21T11:12:30.004Z",
                     *           "memoryBytes": 702545920,
                     *           "cpus": 0.021,
                     *           "diskBytes": 14155776,
                     *           "processes": 9
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description Null where the agent has no limit of its own: as a process. */
                        memoryLimitBytes: number | null;
                        disk: {
                            usedBytes: number;
                            limitBytes: number;
                        };
                        /** @description Oldest first. */
                        samples: {
                            at: string;
                            /** @description Resident memory of all its processes. */
                            memoryBytes: number;
                            /** @description Processors used on average since the sample before. */
                            cpus: number;
                            diskBytes: number;
                            processes: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgents: {
        parameters: {
            query?: {
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agents of the workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agents": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "name": "Librarian",
                     *           "description": "Keeps the catalogue.",
                     *           "vibe": null,
                     *           "emoji": null,
                     *           "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *           "createdAt": "2026-11-21T11:04:48.230Z",
                     *           "updatedAt": "2026-11-21T11:05:31.902Z",
                     *           "status": "running",
                     *           "statusReason": null,
                     *           "lastSync": null,
                     *           "snapshotCid": null,
                     *           "fileManifest": null,
                     *           "snapshotsUpdatedAt": null,
                     *           "engine": "openclaw",
                     *           "agentVersion": "2026.9.6"
                     *         }
                     *       ],
                     *       "agentLimit": 10,
                     *       "timeCredits": null
                     *     }
                     */
                    "application/json": {
                        agents: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that turn the direction of text, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host, and its git. Null for who may only read, and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why it does not run or was restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last found the same as its newest snapshot, or became it. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, a line `<size> <path>` each; at most 64 KiB, and a last line that begins with `…` where there are more. Null but where one agent is read. */
                            fileManifest: string | null;
                            /** @description Of its newest snapshot. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        }[];
                        /** @description Agents that the plan allows; null where it has no limit. */
                        agentLimit: number | null;
                        timeCredits: null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Librarian",
                 *       "description": "Keeps the catalogue.",
                 *       "templateId": "assistant",
                 *       "secretIds": [
                 *         "0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: agent-name
                     * @description At most 100 characters, without control characters, line breaks, characters that turn the direction of text, and < > " ` \.
                     */
                    name: string;
                    description?: string | null;
                    vibe?: string | null;
                    emoji?: string | null;
                    /**
                     * @default openclaw
                     * @constant
                     */
                    engine?: "openclaw";
                    /**
                     * @description Secrets of the workspace that the agent gets from its first start.
                     * @default []
                     */
                    secretIds?: string[];
                    /** @description The owner as the agent knows them. */
                    userName?: string | null;
                    userEmail?: string | null;
                    /** @description Skills that the agent has from its first start: CIDs of the library, or slugs. */
                    skillCids?: string[] | null;
                    /** @description A template, by its id or slug: its files are what the agent begins with. What it says of description, vibe and emoji holds where the body does not name them. */
                    templateId?: string | null;
                    /** @description A model of a server on the agent’s own machine, as `findModels` has them. Its config begins with it, whatever the operator’s model is. Only where agents are processes. */
                    localModel?: {
                        /** @enum {string} */
                        server: "ollama" | "lm-studio" | "llama.cpp";
                        model: string;
                    } | null;
                    /** @description As the bodies of `configureChannel`, by channel. */
                    channels?: {
                        telegram?: {
                            botToken?: string & (unknown & unknown);
                            enabled?: boolean;
                            /**
                             * @description Who may write to the agent; `closed` is an older name of `allowlist`.
                             * @enum {string}
                             */
                            dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                            /** @description Senders, in the way of the channel: for Telegram their numeric ids. */
                            allowFrom?: (string | number)[];
                            /** @description Leaves the gateway as it runs, without the change. */
                            skipRestart?: boolean;
                        };
                        slack?: {
                            botToken?: string & (unknown & unknown);
                            appToken?: string & (unknown & unknown);
                            enabled?: boolean;
                            /**
                             * @description Who may write to the agent; `closed` is an older name of `allowlist`.
                             * @enum {string}
                             */
                            dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                            /** @description Senders, in the way of the channel: for Telegram their numeric ids. */
                            allowFrom?: (string | number)[];
                            /** @description Leaves the gateway as it runs, without the change. */
                            skipRestart?: boolean;
                        };
                        discord?: {
                            botToken?: string;
                            enabled?: boolean;
                            /**
                             * @description Who may write to the agent; `closed` is an older name of `allowlist`.
                             * @enum {string}
                             */
                            dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                            /** @description Senders, in the way of the channel: for Telegram their numeric ids. */
                            allowFrom?: (string | number)[];
                            /** @description Leaves the gateway as it runs, without the change. */
                            skipRestart?: boolean;
                        };
                        whatsapp?: {
                            enabled?: boolean;
                            /**
                             * @description Who may write to the agent; `closed` is an older name of `allowlist`.
                             * @enum {string}
                             */
                            dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                            /** @description Senders, in the way of the channel: for Telegram their numeric ids. */
                            allowFrom?: (string | number)[];
                            /** @description Leaves the gateway as it runs, without the change. */
                            skipRestart?: boolean;
                        };
                    };
                };
            };
        };
        responses: {
            /** @description The agent. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "agent": {
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Librarian",
                     *         "description": "Keeps the catalogue.",
                     *         "vibe": null,
                     *         "emoji": null,
                     *         "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *         "createdAt": "2026-11-21T11:04:48.230Z",
                     *         "updatedAt": "2026-11-21T11:05:31.902Z",
                     *         "status": "running",
                     *         "statusReason": null,
                     *         "lastSync": null,
                     *         "snapshotCid": null,
                     *         "fileManifest": null,
                     *         "snapshotsUpdatedAt": null,
                     *         "engine": "openclaw",
                     *         "agentVersion": "2026.9.6"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        agent: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that turn the direction of text, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host, and its git. Null for who may only read, and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why it does not run or was restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last found the same as its newest snapshot, or became it. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, a line `<size> <path>` each; at most 64 KiB, and a last line that begins with `…` where there are more. Null but where one agent is read. */
                            fileManifest: string | null;
                            /** @description Of its newest snapshot. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            /** @description A fault of Berth; the log has the cause. */
            500: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "error": "Gateway failed to start",
                     *       "agent": {
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Librarian",
                     *         "description": "Keeps the catalogue.",
                     *         "vibe": null,
                     *         "emoji": null,
                     *         "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *         "createdAt": "2026-11-21T11:04:48.230Z",
                     *         "updatedAt": "2026-11-21T11:05:31.902Z",
                     *         "status": "not_running",
                     *         "statusReason": "the gateway was not ready in time",
                     *         "lastSync": null,
                     *         "snapshotCid": null,
                     *         "fileManifest": null,
                     *         "snapshotsUpdatedAt": null,
                     *         "engine": "openclaw",
                     *         "agentVersion": "2026.9.6"
                     *       }
                     *     }
                     */
                    "application/json": {
                        error: string;
                        agent: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that turn the direction of text, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host, and its git. Null for who may only read, and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why it does not run or was restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last found the same as its newest snapshot, or became it. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, a line `<size> <path>` each; at most 64 KiB, and a last line that begins with `…` where there are more. Null but where one agent is read. */
                            fileManifest: string | null;
                            /** @description Of its newest snapshot. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        };
                    };
                };
            };
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    getAgent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agent": {
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Librarian",
                     *         "description": "Keeps the catalogue.",
                     *         "vibe": null,
                     *         "emoji": null,
                     *         "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *         "createdAt": "2026-11-21T11:04:48.230Z",
                     *         "updatedAt": "2026-11-21T11:05:31.902Z",
                     *         "status": "running",
                     *         "statusReason": null,
                     *         "lastSync": null,
                     *         "snapshotCid": null,
                     *         "fileManifest": null,
                     *         "snapshotsUpdatedAt": null,
                     *         "engine": "openclaw",
                     *         "agentVersion": "2026.9.6"
                     *       },
                     *       "processStatus": "running",
                     *       "processId": "31",
                     *       "disk": {
                     *         "usedBytes": 14155776,
                     *         "limitBytes": 10737418240,
                     *         "hardLimit": true
                     *       },
                     *       "skills": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "skillId": "0193a1c9-6b3f-7c04-a5d2-1e8f7b9c0d34",
                     *           "skillCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *           "attachedAt": "2026-11-21T11:04:48.230Z",
                     *           "name": "catalogue",
                     *           "description": "Finds books by title, author and shelf.",
                     *           "version": "1.2.0",
                     *           "slug": null
                     *         }
                     *       ],
                     *       "secrets": [
                     *         {
                     *           "id": "0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3",
                     *           "name": "OPENAI_API_KEY",
                     *           "createdAt": "2026-11-21T11:05:12.418Z",
                     *           "updatedAt": "2026-11-21T11:05:12.418Z",
                     *           "synced": true
                     *         }
                     *       ],
                     *       "snapshots": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01",
                     *           "changeSummary": "1 changed",
                     *           "contentDiff": null,
                     *           "createdAt": "2026-11-21T11:20:41.377Z"
                     *         }
                     *       ],
                     *       "portForwarding": [
                     *         {
                     *           "port": 4180,
                     *           "pathPrefix": "/page",
                     *           "protected": false
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        agent: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that turn the direction of text, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host, and its git. Null for who may only read, and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why it does not run or was restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last found the same as its newest snapshot, or became it. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, a line `<size> <path>` each; at most 64 KiB, and a last line that begins with `…` where there are more. Null but where one agent is read. */
                            fileManifest: string | null;
                            /** @description Of its newest snapshot. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        };
                        /**
                         * @description Of the gateway, as it is now.
                         * @enum {string}
                         */
                        processStatus: "starting" | "running" | "not_running";
                        /** @description Of the gateway, as its system numbers it. */
                        processId: string | null;
                        /** @description Its workspace, the state of its engine and its home together. Null while it cannot be reached. */
                        disk: {
                            usedBytes: number;
                            limitBytes: number;
                            /** @description Whether the file system refuses what goes over the limit. Otherwise it is counted every ten seconds or so, and an agent that goes over it is stopped. */
                            hardLimit: boolean;
                        } | null;
                        skills: {
                            agentId: string;
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description The version that is attached. */
                            skillCid: string;
                            attachedAt: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` where it came from the hub. */
                            slug: string | null;
                        }[];
                        secrets: {
                            id: string;
                            name: string;
                            createdAt: string;
                            updatedAt: string;
                            /** @description Whether the running gateway has the value as it is now. */
                            synced: boolean;
                        }[];
                        /** @description The newest 10, the newest first. */
                        snapshots: {
                            agentId: string;
                            /** @description A folder on IPFS: the tree of the commit. */
                            snapshotCid: string;
                            userId: string;
                            /** @description The commit in the agent’s git repository. */
                            commitSha: string | null;
                            /** @description What is other than in the one before, for people. */
                            changeSummary: string | null;
                            /** @description Unified, against the one before; at most 64 KiB. */
                            contentDiff: string | null;
                            createdAt: string;
                        }[];
                        portForwarding: {
                            port: number;
                            pathPrefix: string;
                            protected: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Agent x7f3k2ab deleted",
                     *       "wasInRegistry": true,
                     *       "r2ObjectsDeleted": 0
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        wasInRegistry: boolean;
                        r2ObjectsDeleted: number;
                    };
                };
            };
            /** @description It is gone; its container is being removed. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Agent x7f3k2ab deleted",
                     *       "wasInRegistry": true,
                     *       "r2ObjectsDeleted": 0,
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        wasInRegistry: boolean;
                        r2ObjectsDeleted: number;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    changeMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "vibe": "quiet and exact",
                 *       "emoji": "📚"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: agent-name
                     * @description At most 100 characters, without control characters, line breaks, characters that turn the direction of text, and < > " ` \.
                     */
                    name?: string;
                    description?: string | null;
                    vibe?: string | null;
                    emoji?: string | null;
                } | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The agent as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "agent": {
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "Librarian",
                     *         "description": "Keeps the catalogue.",
                     *         "vibe": "quiet and exact",
                     *         "emoji": "📚",
                     *         "gatewayToken": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *         "createdAt": "2026-11-21T11:04:48.230Z",
                     *         "updatedAt": "2026-11-21T11:05:31.902Z",
                     *         "status": "running",
                     *         "statusReason": null,
                     *         "lastSync": null,
                     *         "snapshotCid": null,
                     *         "fileManifest": null,
                     *         "snapshotsUpdatedAt": null,
                     *         "engine": "openclaw",
                     *         "agentVersion": "2026.9.6"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        agent: {
                            agentId: string;
                            userId: string;
                            /**
                             * Format: agent-name
                             * @description At most 100 characters, without control characters, line breaks, characters that turn the direction of text, and < > " ` \.
                             */
                            name: string;
                            description: string | null;
                            vibe: string | null;
                            emoji: string | null;
                            /** @description Opens the agent’s own host, and its git. Null for who may only read, and for platform tokens. */
                            gatewayToken: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @enum {string} */
                            status: "starting" | "running" | "not_running";
                            /** @description Why it does not run or was restarted by itself, or what a running agent lacks, such as a model. */
                            statusReason: string | null;
                            /** @description When its workspace was last found the same as its newest snapshot, or became it. */
                            lastSync: string | null;
                            /** @description Its newest snapshot. */
                            snapshotCid: string | null;
                            /** @description The files of its newest snapshot, a line `<size> <path>` each; at most 64 KiB, and a last line that begins with `…` where there are more. Null but where one agent is read. */
                            fileManifest: string | null;
                            /** @description Of its newest snapshot. */
                            snapshotsUpdatedAt: string | null;
                            engine: string;
                            /** @description Version of the engine. */
                            agentVersion: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getAgentStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How it is. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "status": "running",
                     *       "statusReason": null,
                     *       "engine": "openclaw",
                     *       "agentVersion": "2026.9.6",
                     *       "reachable": true,
                     *       "startedAt": "2026-11-21T11:05:20.405Z",
                     *       "gateway": {
                     *         "state": "ready",
                     *         "pid": 31,
                     *         "restarts": 0,
                     *         "exitCode": null,
                     *         "reason": null,
                     *         "outOfMemory": null,
                     *         "lastLines": []
                     *       },
                     *       "scripts": {
                     *         "build": {
                     *           "state": "success",
                     *           "exitCode": 0,
                     *           "startedAt": "2026-11-21T11:05:32.118Z",
                     *           "finishedAt": "2026-11-21T11:05:40.733Z"
                     *         },
                     *         "start": {
                     *           "state": "running",
                     *           "exitCode": null,
                     *           "startedAt": "2026-11-21T11:05:32.118Z",
                     *           "finishedAt": null
                     *         }
                     *       },
                     *       "skillProblems": [
                     *         {
                     *           "name": "notes",
                     *           "message": "skills/notes is not as Berth has put it there"
                     *         }
                     *       ],
                     *       "disk": {
                     *         "usedBytes": 14155776,
                     *         "limitBytes": 10737418240,
                     *         "hardLimit": true
                     *       }
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        /** @enum {string} */
                        status: "starting" | "running" | "not_running";
                        /** @description Why it does not run or was restarted by itself, or what a running agent lacks, such as a model. */
                        statusReason: string | null;
                        engine: string;
                        agentVersion: string;
                        /** @description Whether the agent’s supervisor answered. */
                        reachable: boolean;
                        /** @description Since when the supervisor runs. */
                        startedAt: string | null;
                        gateway: {
                            /** @enum {string} */
                            state: "stopped" | "starting" | "ready" | "failed";
                            pid: number | null;
                            restarts: number;
                            exitCode: number | null;
                            reason: string | null;
                            /**
                             * @description When and why it was restarted by itself, if the kernel killed it for memory.
                             * @default null
                             */
                            outOfMemory: string | null;
                            lastLines: string[];
                        } | null;
                        /** @description Null until the agent was up once. */
                        scripts: {
                            build: {
                                /** @enum {string} */
                                state: "not_configured" | "pending" | "running" | "success" | "failed";
                                exitCode: number | null;
                                startedAt: string | null;
                                finishedAt: string | null;
                                /** @description Why it failed, if the kernel killed a process for memory while it ran. */
                                reason?: string;
                            };
                            start: {
                                /** @enum {string} */
                                state: "not_configured" | "pending" | "running" | "success" | "failed";
                                exitCode: number | null;
                                startedAt: string | null;
                                finishedAt: string | null;
                                /** @description Why it failed, if the kernel killed a process for memory while it ran. */
                                reason?: string;
                            };
                        } | null;
                        /** @description Skills that the agent does not have as they are attached, when they were last written to it. */
                        skillProblems: {
                            name: string;
                            message: string;
                        }[];
                        /** @description Its workspace, the state of its engine and its home together. Null while it cannot be reached. */
                        disk: {
                            usedBytes: number;
                            limitBytes: number;
                            /** @description Whether the file system refuses what goes over the limit. Otherwise it is counted every ten seconds or so, and an agent that goes over it is stopped. */
                            hardLimit: boolean;
                        } | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secrets, without their values. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "secrets": [
                     *         {
                     *           "id": "0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "name": "OPENAI_API_KEY",
                     *           "type": "secret",
                     *           "createdAt": "2026-11-21T11:05:12.418Z",
                     *           "updatedAt": "2026-11-21T11:05:12.418Z",
                     *           "agents": [
                     *             {
                     *               "agentId": "x7f3k2ab",
                     *               "name": "Librarian"
                     *             }
                     *           ]
                     *         }
                     *       ],
                     *       "secretLimit": null
                     *     }
                     */
                    "application/json": {
                        secrets: {
                            id: string;
                            userId: string;
                            name: string;
                            /**
                             * @description The value of a variable is shown, that of a secret never.
                             * @enum {string}
                             */
                            type: "secret" | "variable";
                            /** @description Of variables only; null where it was encrypted with another SECRETS_KEY. */
                            value?: string | null;
                            createdAt: string;
                            updatedAt: string;
                            /** @description The agents that it is attached to. */
                            agents: {
                                agentId: string;
                                name: string;
                            }[];
                        }[];
                        /** @description Secrets that the plan allows; null where it has no limit. */
                        secretLimit: number | null;
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createSecret: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "OPENAI_API_KEY",
                 *       "value": "sk-proj-…"
                 *     }
                 */
                "application/json": {
                    /** @description The environment variable that it becomes in agents. */
                    name: string;
                    value: string;
                    /**
                     * @description The value of a variable is shown, that of a secret never.
                     * @default secret
                     * @enum {string}
                     */
                    type?: "secret" | "variable";
                };
            };
        };
        responses: {
            /** @description The secret. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "secret": {
                     *         "id": "0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "OPENAI_API_KEY",
                     *         "type": "secret",
                     *         "createdAt": "2026-11-21T11:05:12.418Z",
                     *         "updatedAt": "2026-11-21T11:05:12.418Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        secret: {
                            id: string;
                            userId: string;
                            name: string;
                            /**
                             * @description The value of a variable is shown, that of a secret never.
                             * @enum {string}
                             */
                            type: "secret" | "variable";
                            /** @description Of variables only; null where it was encrypted with another SECRETS_KEY. */
                            value?: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "value": "sk-proj-…"
                 *     }
                 */
                "application/json": {
                    value: string;
                };
            };
        };
        responses: {
            /** @description The secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "secret": {
                     *         "id": "0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "name": "OPENAI_API_KEY",
                     *         "type": "secret",
                     *         "createdAt": "2026-11-21T11:05:12.418Z",
                     *         "updatedAt": "2026-11-21T11:05:12.418Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        secret: {
                            id: string;
                            userId: string;
                            name: string;
                            /**
                             * @description The value of a variable is shown, that of a secret never.
                             * @enum {string}
                             */
                            type: "secret" | "variable";
                            /** @description Of variables only; null where it was encrypted with another SECRETS_KEY. */
                            value?: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id, a UUID. One that is malformed is nobody’s, and answers 404. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secrets that are attached to it, by name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "secrets": [
                     *         {
                     *           "id": "0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3",
                     *           "name": "OPENAI_API_KEY",
                     *           "createdAt": "2026-11-21T11:05:12.418Z",
                     *           "updatedAt": "2026-11-21T11:05:12.418Z",
                     *           "synced": true
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        secrets: {
                            id: string;
                            name: string;
                            createdAt: string;
                            updatedAt: string;
                            /** @description Whether the running gateway has the value as it is now. */
                            synced: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    attachSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "secretIds": [
                 *         "0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description Ids of secrets of the workspace. */
                    secretIds: string[];
                };
            };
        };
        responses: {
            /** @description How many of the given secrets are attached now: all. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "attached": 1,
                     *       "message": "The agent restarts to get them",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "queued"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        attached: number;
                        message: string;
                        operation?: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    detachSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the secret, a UUID. */
                secretId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Detached. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSkills: {
        parameters: {
            query?: {
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skills of the workspace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skills": [
                     *         {
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "name": "invoices",
                     *           "description": "Write invoices from the price list.",
                     *           "version": "1.2.0",
                     *           "slug": null,
                     *           "network": "private",
                     *           "createdAt": "2026-11-21T11:05:12.208Z",
                     *           "updatedAt": "2026-11-21T11:05:12.208Z",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "envVars": [
                     *             {
                     *               "name": "INVOICE_API_KEY",
                     *               "description": "Of the accounting service."
                     *             }
                     *           ],
                     *           "fileId": "0193a1c4-6f11-7d20-9b3a-51c7e0d48a26"
                     *         }
                     *       ],
                     *       "currentUserId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60"
                     *     }
                     */
                    "application/json": {
                        skills: {
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` where it came from the hub. */
                            slug: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            createdAt: string;
                            updatedAt: string;
                            userId: string;
                            /** @description Environment variables that it reads, for people who attach secrets. */
                            envVars: {
                                name: string;
                                description?: string;
                            }[];
                            /** @description The file of the workspace with the same content. */
                            fileId: string | null;
                        }[];
                        currentUserId: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addSkill: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "name": "invoices",
                 *       "envVars": [
                 *         {
                 *           "name": "INVOICE_API_KEY",
                 *           "description": "Of the accounting service."
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description CID of a folder with SKILL.md.
                     */
                    skillCid: string;
                    /** @description Its folder in agents. */
                    name: string;
                    /** @description That of SKILL.md where it is not given. */
                    description?: string;
                    /** @default [] */
                    envVars?: {
                        name: string;
                        description?: string;
                    }[];
                    /**
                     * Format: uuid
                     * @description A file of the workspace with this content.
                     */
                    fileId?: string;
                };
            };
        };
        responses: {
            /** @description The skill. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "skill": {
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "name": "invoices",
                     *         "description": "Write invoices from the price list.",
                     *         "version": "1.2.0",
                     *         "slug": null,
                     *         "network": "private",
                     *         "createdAt": "2026-11-21T11:05:12.208Z",
                     *         "updatedAt": "2026-11-21T11:05:12.208Z",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "envVars": [
                     *           {
                     *             "name": "INVOICE_API_KEY",
                     *             "description": "Of the accounting service."
                     *           }
                     *         ],
                     *         "fileId": "0193a1c4-6f11-7d20-9b3a-51c7e0d48a26"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        skill: {
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` where it came from the hub. */
                            slug: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            createdAt: string;
                            updatedAt: string;
                            userId: string;
                            /** @description Environment variables that it reads, for people who attach secrets. */
                            envVars: {
                                name: string;
                                description?: string;
                            }[];
                            /** @description The file of the workspace with the same content. */
                            fileId: string | null;
                        };
                    };
                };
            };
            /** @description Its content is being retrieved. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The content is being retrieved: repeat the request when the operation has ended",
                     *       "operation": {
                     *         "id": "0193a1c5-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSkillVersions: {
        parameters: {
            query?: {
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /** @description Its id, or the CID of one of its versions. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *       "versions": [
                     *         {
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "skillCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *           "version": "1.3.0",
                     *           "network": "private",
                     *           "fileId": null,
                     *           "createdAt": "2026-11-21T12:40:00.917Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        skillId: string;
                        versions: {
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            fileId: string | null;
                            createdAt: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addSkillVersion: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description Its id, or the CID of one of its versions. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "skillCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                 *       "version": "1.3.0"
                 *     }
                 */
                "application/json": {
                    /** Format: cid */
                    skillCid: string;
                    /** @description That of SKILL.md where it is not given. */
                    version?: string;
                    /** Format: uuid */
                    fileId?: string;
                };
            };
        };
        responses: {
            /** @description The version. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "version": {
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *         "version": "1.3.0",
                     *         "network": "private",
                     *         "fileId": null,
                     *         "createdAt": "2026-11-21T12:40:00.917Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        version: {
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            fileId: string | null;
                            createdAt: string;
                        };
                    };
                };
            };
            /** @description Its content is being retrieved. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The content is being retrieved: repeat the request when the operation has ended",
                     *       "operation": {
                     *         "id": "0193a1c5-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteSkill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id, or the CID of one of its versions. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is not in the library. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Skill invoices deleted",
                     *       "wasInLibrary": true
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        wasInLibrary: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentSkills: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skills. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skills": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "name": "invoices",
                     *           "description": "Write invoices from the price list.",
                     *           "version": "1.2.0",
                     *           "slug": null,
                     *           "attachedAt": "2026-11-21T11:05:12.208Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        skills: {
                            agentId: string;
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description The version that is attached. */
                            skillCid: string;
                            attachedAt: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` where it came from the hub. */
                            slug: string | null;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    attachSkills: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "skillCids": [
                 *         "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *         "@berth/journal"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description CIDs of skills in the library, or slugs (`@owner/name`). */
                    skillCids: string[];
                };
            };
        };
        responses: {
            /** @description They are attached. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent has it",
                     *       "attached": 2
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description The operation, where the answer did not wait for its end. */
                        operation?: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                        /** @description How many of the given skills are attached now: all. */
                        attached: number;
                    };
                };
            };
            /** @description It is done for Berth; the agent gets it when what it does now has ended. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "It is written to the agent; see the operation",
                     *       "operation": {
                     *         "id": "0193a1c5-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       },
                     *       "attached": 2
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description The operation, where the answer did not wait for its end. */
                        operation?: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                        /** @description How many of the given skills are attached now: all. */
                        attached: number;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    detachSkill: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the skill in the library, a UUID. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is detached. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent no longer has it"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description The operation, where the answer did not wait for its end. */
                        operation?: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            /** @description It is done for Berth; the agent gets it when what it does now has ended. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "It is removed from the agent; see the operation",
                     *       "operation": {
                     *         "id": "0193a1c5-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description The operation, where the answer did not wait for its end. */
                        operation?: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listSkillUpdates: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Each skill of the agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "updates": [
                     *         {
                     *           "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *           "name": "invoices",
                     *           "skillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "version": "1.2.0",
                     *           "latestSkillCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *           "latestVersion": "1.3.0",
                     *           "updateAvailable": true,
                     *           "folder": "modified"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        updates: {
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            name: string;
                            /** @description The version that is attached. */
                            skillCid: string;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            latestSkillCid: string;
                            /** @description Semantic version, where the skill names one. */
                            latestVersion: string | null;
                            updateAvailable: boolean;
                            /** @description How its folder in the agent is: `modified`, the agent has changed it; `other`, it is another version or of another origin, in conflict; `missing`. Null while the agent does not answer. */
                            folder: ("same" | "modified" | "other" | "missing") | null;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateSkill: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the skill in the library, a UUID. */
                skillId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "expectedSkillCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                 *       "resolution": "replace"
                 *     }
                 */
                "application/json": {
                    /** @description The version to have; the newest where neither is given. */
                    version?: string;
                    /**
                     * Format: cid
                     * @description The same by its CID.
                     */
                    skillCid?: string;
                    /**
                     * Format: cid
                     * @description The version that the caller thinks is attached: 409 where it is another one.
                     */
                    expectedSkillCid?: string;
                    /**
                     * @description `replace`: what the agent changed in the folder is lost. `keep`: the folder stays as the agent has it, and counts as this version.
                     * @enum {string}
                     */
                    resolution?: "replace" | "keep";
                };
            };
        };
        responses: {
            /** @description The skill as it is attached now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The agent has it",
                     *       "skill": {
                     *         "agentId": "x7f3k2ab",
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *         "name": "invoices",
                     *         "description": "Write invoices from the price list.",
                     *         "version": "1.3.0",
                     *         "slug": null,
                     *         "attachedAt": "2026-11-21T11:05:12.208Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description The operation, where the answer did not wait for its end. */
                        operation?: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                        skill: {
                            agentId: string;
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description The version that is attached. */
                            skillCid: string;
                            attachedAt: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` where it came from the hub. */
                            slug: string | null;
                        };
                    };
                };
            };
            /** @description It is done for Berth; the agent gets it when what it does now has ended. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "It is written to the agent; see the operation",
                     *       "operation": {
                     *         "id": "0193a1c5-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       },
                     *       "skill": {
                     *         "agentId": "x7f3k2ab",
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *         "name": "invoices",
                     *         "description": "Write invoices from the price list.",
                     *         "version": "1.3.0",
                     *         "slug": null,
                     *         "attachedAt": "2026-11-21T11:05:12.208Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        /** @description The operation, where the answer did not wait for its end. */
                        operation?: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                        skill: {
                            agentId: string;
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description The version that is attached. */
                            skillCid: string;
                            attachedAt: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` where it came from the hub. */
                            slug: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listHub: {
        parameters: {
            query?: {
                /** @description Words that its name, description or tags have. */
                q?: string;
                /**
                 * @description Only this category.
                 * @example productivity
                 */
                category?: string;
                /** @description By how often they were installed, by age, or by name. */
                sort?: "popular" | "newest" | "name";
                /** @description Only those that are featured, or only those that are not. */
                featured?: "true" | "false";
                /** @description `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the hub. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skills": [
                     *         {
                     *           "hubSkillId": "QGJlcnRoL2pvdXJuYWw",
                     *           "skillCid": "bafybeihuhobkl6df3ihkap53v4hsqsns5at2oadvkx444zdhphayuzac44",
                     *           "name": "journal",
                     *           "slug": "@berth/journal",
                     *           "description": "Keep a short journal of what was done and decided, so that the next session knows it.",
                     *           "longDescription": null,
                     *           "authorName": "Berth",
                     *           "authorUrl": null,
                     *           "authorLogoUrl": null,
                     *           "category": "productivity",
                     *           "tags": [
                     *             "memory",
                     *             "notes"
                     *           ],
                     *           "envVars": [],
                     *           "readmeUrl": null,
                     *           "featured": true,
                     *           "installCount": 3,
                     *           "version": "1.0.0",
                     *           "createdAt": "2026-11-21T11:05:12.208Z",
                     *           "updatedAt": "2026-11-21T11:05:12.208Z"
                     *         }
                     *       ],
                     *       "nextCursor": null
                     *     }
                     */
                    "application/json": {
                        skills: {
                            hubSkillId: string;
                            /** @description Its folder on IPFS; null where that shows when it is installed. */
                            skillCid: string | null;
                            name: string;
                            /** @description `@owner/name`. */
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            envVars: {
                                name: string;
                                description?: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required?: boolean;
                            }[];
                            readmeUrl: string | null;
                            featured: boolean;
                            /** @description Libraries of this Berth that have it. */
                            installCount: number;
                            version: string | null;
                            createdAt: string;
                            updatedAt: string;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getHubSkill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Its slug, as it is or percent-encoded (`%40owner%2Fname`), or its `hubSkillId`.
                 * @example assistant
                 */
                slug: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skill. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "skill": {
                     *         "hubSkillId": "QGJlcnRoL2pvdXJuYWw",
                     *         "skillCid": "bafybeihuhobkl6df3ihkap53v4hsqsns5at2oadvkx444zdhphayuzac44",
                     *         "name": "journal",
                     *         "slug": "@berth/journal",
                     *         "description": "Keep a short journal of what was done and decided, so that the next session knows it.",
                     *         "longDescription": null,
                     *         "authorName": "Berth",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "productivity",
                     *         "tags": [
                     *           "memory",
                     *           "notes"
                     *         ],
                     *         "envVars": [],
                     *         "readmeUrl": null,
                     *         "featured": true,
                     *         "installCount": 3,
                     *         "version": "1.0.0",
                     *         "createdAt": "2026-11-21T11:05:12.208Z",
                     *         "updatedAt": "2026-11-21T11:05:12.208Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        skill: {
                            hubSkillId: string;
                            /** @description Its folder on IPFS; null where that shows when it is installed. */
                            skillCid: string | null;
                            name: string;
                            /** @description `@owner/name`. */
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            envVars: {
                                name: string;
                                description?: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required?: boolean;
                            }[];
                            readmeUrl: string | null;
                            featured: boolean;
                            /** @description Libraries of this Berth that have it. */
                            installCount: number;
                            version: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    installHubSkill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Its slug, as it is or percent-encoded (`%40owner%2Fname`), or its `hubSkillId`.
                 * @example assistant
                 */
                slug: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The skill in the library. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "skill": {
                     *         "skillId": "0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19",
                     *         "skillCid": "bafybeihuhobkl6df3ihkap53v4hsqsns5at2oadvkx444zdhphayuzac44",
                     *         "name": "@berth/journal",
                     *         "description": "Keep a short journal of what was done and decided, so that the next session knows it.",
                     *         "version": "1.0.0",
                     *         "slug": "@berth/journal",
                     *         "network": "public",
                     *         "createdAt": "2026-11-21T11:05:12.208Z",
                     *         "updatedAt": "2026-11-21T11:05:12.208Z",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "envVars": [],
                     *         "fileId": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        skill: {
                            /** @description Of the skill in the library; stays the same with all its versions. */
                            skillId: string;
                            /** @description Its folder on IPFS, as CIDv1. */
                            skillCid: string;
                            name: string;
                            description: string | null;
                            /** @description Semantic version, where the skill names one. */
                            version: string | null;
                            /** @description `@owner/name` where it came from the hub. */
                            slug: string | null;
                            /** @enum {string} */
                            network: "public" | "private";
                            createdAt: string;
                            updatedAt: string;
                            userId: string;
                            /** @description Environment variables that it reads, for people who attach secrets. */
                            envVars: {
                                name: string;
                                description?: string;
                            }[];
                            /** @description The file of the workspace with the same content. */
                            fileId: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            507: components["responses"]["507"];
        };
    };
    getGatewayToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token, and where it is good. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *       "wsUrl": "wss://x7f3k2ab.agents.example",
                     *       "baseUrl": "https://x7f3k2ab.agents.example"
                     *     }
                     */
                    "application/json": {
                        token: string;
                        /** @description The agent’s own host, for WebSockets. */
                        wsUrl: string;
                        /** @description The same for HTTP. */
                        baseUrl: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    rotateGatewayToken: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The new token. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77",
                     *       "wsUrl": "wss://x7f3k2ab.agents.example",
                     *       "baseUrl": "https://x7f3k2ab.agents.example"
                     *     }
                     */
                    "application/json": {
                        token: string;
                        /** @description The agent’s own host, for WebSockets. */
                        wsUrl: string;
                        /** @description The same for HTTP. */
                        baseUrl: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createPlatformToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4N2YzazJhYiJ9.c2lnbmF0dXJl"
                     *     }
                     */
                    "application/json": {
                        /** @description A JWT, for one hour. */
                        token: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    whoami: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agent. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "name": "Librarian",
                     *       "status": "running",
                     *       "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *       "workspaceId": "0193a1bf-02b1-7a44-8b0d-93c2f1a5d7e8",
                     *       "tokenKind": "gateway"
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        name: string;
                        /** @enum {string} */
                        status: "starting" | "running" | "not_running";
                        userId: string;
                        workspaceId: string;
                        /**
                         * @description `key`: an API key of the workspace.
                         * @enum {string}
                         */
                        tokenKind: "gateway" | "platform" | "key";
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readAgentLogs: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines, as one text. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "logs": "2026-11-21T10:58:07.120Z INFO gateway/ws listening on 127.0.0.1:18789\n2026-11-21T10:58:09.481Z INFO script/build done"
                     *     }
                     */
                    "application/json": {
                        logs: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    followAgentLogs: {
        parameters: {
            query?: {
                /** @description How many of the last lines come first. */
                lines?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lines as they come. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: line
                     *     data: {"timestamp":"2026-11-21T11:05:40.733Z","level":"INFO","source":"gateway","message":"http server listening"}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listConversations: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The conversations, the latest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "conversations": [
                     *         {
                     *           "conversationId": "7d0f3a52-90c4-4c1e-8a57-2b6f1d9e0c34",
                     *           "title": "Which books came this week?",
                     *           "updatedAt": "2026-11-21T11:12:40.118Z",
                     *           "isReplying": false
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        conversations: {
                            conversationId: string;
                            /** @description The first words of it. */
                            title: string | null;
                            updatedAt: string | null;
                            isReplying: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readConversation: {
        parameters: {
            query?: {
                /** @description Most messages. */
                limit?: number;
                /** @description How many of the newest ones to leave out: `nextOffset` of the page before. */
                offset?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID of the client’s own: the first message begins it. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its latest messages. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "messages": [
                     *         {
                     *           "id": "4b3c0f6a-2f1d-4d7e-9a51-0c8e7d6f5a21",
                     *           "role": "user",
                     *           "text": "Which books came this week?",
                     *           "createdAt": "2026-11-21T11:12:38.402Z",
                     *           "toolCalls": [],
                     *           "toolCallId": null,
                     *           "isError": false
                     *         },
                     *         {
                     *           "id": "c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e5f",
                     *           "role": "assistant",
                     *           "text": "Three, all on ships.",
                     *           "createdAt": "2026-11-21T11:12:40.090Z",
                     *           "toolCalls": [],
                     *           "toolCallId": null,
                     *           "isError": false
                     *         }
                     *       ],
                     *       "isReplying": false,
                     *       "nextOffset": null
                     *     }
                     */
                    "application/json": {
                        /** @description Oldest first. */
                        messages: {
                            id: string;
                            /**
                             * @description `tool`: the result of a call.
                             * @enum {string}
                             */
                            role: "user" | "assistant" | "tool";
                            text: string;
                            createdAt: string | null;
                            /** @description Tools that the agent called in this message. */
                            toolCalls: {
                                id: string;
                                name: string;
                                /** @description As JSON. */
                                arguments: string;
                            }[];
                            /** @description The call whose result this is. */
                            toolCallId: string | null;
                            /** @description Whether the call, or the reply, has failed. */
                            isError: boolean;
                        }[];
                        isReplying: boolean;
                        /** @description Where older messages begin; null where there are none. */
                        nextOffset: number | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID of the client’s own: the first message begins it. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    sendMessage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID of the client’s own: the first message begins it. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "text": "Which books came this week?"
                 *     }
                 */
                "application/json": {
                    /** @description What is said to the agent. */
                    text: string;
                };
            };
        };
        responses: {
            /** @description The reply as it comes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: text
                     *     data: {"item":"9:1","text":"Three, all on ships.","replace":false}
                     *
                     *     event: message
                     *     data: {"id":"c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e5f","role":"assistant","text":"Three, all on ships.","createdAt":"2026-11-21T11:12:40.090Z","toolCalls":[],"toolCallId":null,"isError":false}
                     *
                     *     event: end
                     *     data: {"state":"done"}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
        };
    };
    followConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID of the client’s own: the first message begins it. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The reply as it comes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example event: text
                     *     data: {"item":"9:1","text":"Three, all on ships.","replace":false}
                     *
                     *     event: message
                     *     data: {"id":"c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e5f","role":"assistant","text":"Three, all on ships.","createdAt":"2026-11-21T11:12:40.090Z","toolCalls":[],"toolCallId":null,"isError":false}
                     *
                     *     event: end
                     *     data: {"state":"done"}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
        };
    };
    stopReply: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description A UUID of the client’s own: the first message begins it. */
                conversationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether there was one. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "stopped": true
                     *     }
                     */
                    "application/json": {
                        stopped: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    execCommand: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "command": "git log --oneline -1",
                 *       "cwd": "/home/node/clawd"
                 *     }
                 */
                "application/json": {
                    /** @description What a shell runs. */
                    command: string;
                    /** @description Folder to run it in, absolute or below `/home/node/clawd`, which it is without. */
                    cwd?: string;
                };
            };
        };
        responses: {
            /** @description How it ended. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "stdout": "4f1c2ab feat: begin workspace\n",
                     *       "stderr": "",
                     *       "exitCode": 0,
                     *       "truncated": false,
                     *       "timedOut": false,
                     *       "command": "git log --oneline -1",
                     *       "timestamp": "2026-11-21T10:58:03.485Z"
                     *     }
                     */
                    "application/json": {
                        stdout: string;
                        stderr: string;
                        /** @description 128 + the number of the signal, where one ended it. */
                        exitCode: number;
                        /** @description There was more output than is kept. */
                        truncated: boolean;
                        /** @description It ran for too long and was killed. */
                        timedOut: boolean;
                        /** @description Why it failed, if the kernel killed a process for memory; also the last line of `stderr`. */
                        reason?: string;
                        command: string;
                        timestamp: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readAgentFile: {
        parameters: {
            query: {
                /** @description Absolute, or below `/home/node/clawd`. */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bytes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example # Librarian */
                    "*/*": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    writeAgentFile: {
        parameters: {
            query: {
                /** @description Absolute, or below `/home/node/clawd`. */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example <bytes> */
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description It is written. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "/home/node/clawd/workspace/NOTES.md",
                     *       "size": 12,
                     *       "version": "\"1835021-12-1795431483485.1\""
                     *     }
                     */
                    "application/json": {
                        path: string;
                        size: number;
                        /** @description Its `ETag`, for the next write. */
                        version: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteAgentFile: {
        parameters: {
            query: {
                /** @description Absolute, or below `/home/node/clawd`. */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "path": "/home/node/clawd/workspace/NOTES.md"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        path: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listAgentFiles: {
        parameters: {
            query?: {
                /** @description Absolute, or below `/home/node/clawd`, which it is without. */
                path?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its entries, by name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "/home/node/clawd/workspace",
                     *       "entries": [
                     *         {
                     *           "name": "IDENTITY.md",
                     *           "type": "file",
                     *           "size": 12,
                     *           "modifiedAt": "2026-11-21T10:58:03.485Z"
                     *         }
                     *       ],
                     *       "truncated": false
                     *     }
                     */
                    "application/json": {
                        entries: {
                            name: string;
                            /** @enum {string} */
                            type: "file" | "directory" | "symlink" | "other";
                            size: number;
                            modifiedAt: string;
                        }[];
                        truncated: boolean;
                        path: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    uploadAgentFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filename": "notes.txt",
                 *       "contentBase64": "SGVsbG8K"
                 *     }
                 */
                "application/json": {
                    /** Format: file-name */
                    filename: string;
                    /**
                     * Format: base64
                     * @description The content: base64 (RFC 4648, 4) with padding, without a `data:` prefix.
                     */
                    contentBase64: string;
                };
            };
        };
        responses: {
            /** @description Where it is. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "/home/node/clawd/workspace/uploads/notes.txt",
                     *       "filename": "notes.txt",
                     *       "size": 6
                     *     }
                     */
                    "application/json": {
                        path: string;
                        filename: string;
                        size: number;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    gitRefs: {
        parameters: {
            query: {
                /** @description To read, or to push. */
                service: "git-upload-pack" | "git-receive-pack";
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The branches, as git speaks it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example 001e# service=git-upload-pack
                     *     0000
                     */
                    "*/*": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    gitUploadPack: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example 0014command=ls-refs
                 *     0000
                 */
                "application/x-git-upload-pack-request": string;
            };
        };
        responses: {
            /** @description As git speaks it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example 0008NAK
                     *     0000
                     */
                    "application/x-git-upload-pack-result": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    gitReceivePack: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example 0000 */
                "application/x-git-receive-pack-request": string;
            };
        };
        responses: {
            /** @description As git speaks it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example 0000 */
                    "application/x-git-receive-pack-result": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    manifestSchema: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schema. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "$schema": "https://json-schema.org/draft/2020-12/schema",
                     *       "title": "manifest.json of an agent, version 1",
                     *       "type": "object"
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    readConfig: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The config. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "config": "{\n  \"agents\": {\n    \"defaults\": {\n      \"model\": { \"primary\": \"berth/default\" }\n    }\n  }\n}\n"
                     *     }
                     */
                    "application/json": {
                        config: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    writeConfig: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "config": "{\n  \"agents\": {\n    \"defaults\": {\n      \"model\": { \"primary\": \"berth/default\" }\n    }\n  }\n}\n"
                 *     }
                 */
                "application/json": {
                    /** @description The config: a JSON object, or its text, which may be JSON5. */
                    config: string | {
                        [key: string]: unknown;
                    };
                };
            };
        };
        responses: {
            /** @description It is written, and `ETag` has its new version. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Config written"
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            412: components["responses"]["412"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listOperatorKeys: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         "gateway.mode",
                     *         "gateway.port",
                     *         "telemetry.enabled"
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description Paths of keys, such as `gateway.mode`. Empty until the gateway was started once. */
                        keys: string[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    readConfigSchema: {
        parameters: {
            query?: {
                /** @description Keys with dots between them, such as `agents.defaults`; `*` is any key. All of the config unless given. */
                path?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The place. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "agents.defaults.heartbeat",
                     *       "schema": {
                     *         "type": "object",
                     *         "additionalProperties": false
                     *       },
                     *       "label": "Heartbeat",
                     *       "children": [
                     *         {
                     *           "key": "every",
                     *           "path": "agents.defaults.heartbeat.every",
                     *           "type": "string",
                     *           "required": false,
                     *           "hasChildren": false,
                     *           "label": "Heartbeat interval",
                     *           "help": "How often the agent is woken, such as 30m; 0m turns it off."
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        path: string;
                        /** @description JSON Schema of the value, without the keys below it. */
                        schema: {
                            [key: string]: unknown;
                        };
                        label?: string;
                        help?: string;
                        /** @description The value is a secret. */
                        sensitive?: boolean;
                        /** @description The keys below it. */
                        children: {
                            /** @description `*` stands for any key, or for any place of a list. */
                            key: string;
                            path: string;
                            type?: string | string[];
                            required: boolean;
                            hasChildren: boolean;
                            label?: string;
                            help?: string;
                            /** @description The value is a secret. */
                            sensitive?: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    validateConfig: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "config": "{\n  \"agents\": {\n    \"defaults\": {\n      \"model\": { \"primary\": \"berth/default\" }\n    }\n  }\n}\n"
                 *     }
                 */
                "application/json": {
                    /** @description The config: a JSON object, or its text, which may be JSON5. */
                    config?: string | {
                        [key: string]: unknown;
                    };
                };
            };
        };
        responses: {
            /** @description What the engine thinks of it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "valid": true,
                     *       "output": ""
                     *     }
                     */
                    "application/json": {
                        valid: boolean;
                        /** @description What the engine said. */
                        output: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listChannels: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The channels. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "telegram": {
                     *         "configured": true,
                     *         "enabled": true,
                     *         "dmPolicy": "pairing",
                     *         "allowFrom": [
                     *           "603767951"
                     *         ],
                     *         "botTokenSet": true,
                     *         "botTokenHint": "****x9Qk"
                     *       },
                     *       "slack": null,
                     *       "discord": null,
                     *       "whatsapp": null,
                     *       "version": "2026.9.6"
                     *     }
                     */
                    "application/json": {
                        telegram: {
                            configured: boolean;
                            enabled: boolean;
                            dmPolicy: string;
                            allowFrom: string[];
                            botTokenSet: boolean;
                            botTokenHint: string | null;
                        } | null;
                        slack: {
                            configured: boolean;
                            enabled: boolean;
                            dmPolicy: string;
                            allowFrom: string[];
                            botTokenSet: boolean;
                            botTokenHint: string | null;
                            appTokenSet: boolean;
                            appTokenHint: string | null;
                        } | null;
                        discord: {
                            configured: boolean;
                            enabled: boolean;
                            dmPolicy: string;
                            allowFrom: string[];
                            botTokenSet: boolean;
                            botTokenHint: string | null;
                        } | null;
                        whatsapp: {
                            configured: boolean;
                            enabled: boolean;
                            dmPolicy: string;
                            allowFrom: string[];
                            /** @description Whether a phone is linked. */
                            linked: boolean;
                        } | null;
                        /** @description Version of the engine. */
                        version: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    configureChannel: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The messenger. */
                channel: "telegram" | "slack" | "discord" | "whatsapp";
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "botToken": "123456789:AAHf…",
                 *       "dmPolicy": "pairing",
                 *       "allowFrom": [
                 *         "603767951"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description Telegram, Slack (`xoxb-`), Discord. Kept where it is left out. */
                    botToken?: unknown;
                    /** @description Slack (`xapp-`). Kept where it is left out. */
                    appToken?: unknown;
                    enabled?: boolean;
                    /**
                     * @description Who may write to the agent; `closed` is an older name of `allowlist`.
                     * @enum {string}
                     */
                    dmPolicy?: "open" | "pairing" | "allowlist" | "disabled" | "closed";
                    /** @description Senders, in the way of the channel: for Telegram their numeric ids. */
                    allowFrom?: (string | number)[];
                    /** @description Leaves the gateway as it runs, without the change. */
                    skipRestart?: boolean;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description It is configured. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Channel telegram configured"
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                        message: string;
                    };
                };
            };
            /** @description The gateway is being restarted. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Channel telegram configured; the gateway is being restarted",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    removeChannel: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The messenger. */
                channel: "telegram" | "slack" | "discord" | "whatsapp";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is removed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Channel telegram removed"
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                        message: string;
                    };
                };
            };
            /** @description The gateway is being restarted. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Channel telegram removed; the gateway is being restarted",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listDevices: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The devices that wait, and those that are paired. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "pending": [
                     *         {
                     *           "requestId": "683619e4-3515-4229-9c58-05e77bc17d85",
                     *           "deviceId": "334e41ae88807321775fd2e6309ce4acdc1666544cac1339c57b7994a3262594",
                     *           "publicKey": "PX2gnBxN_0WQLJ7SKSb1ka2fs0_194_kAM3569_gbKc",
                     *           "platform": "linux",
                     *           "clientId": "cli",
                     *           "clientMode": "cli",
                     *           "role": "operator",
                     *           "roles": [
                     *             "operator"
                     *           ],
                     *           "scopes": [
                     *             "operator.read",
                     *             "operator.write"
                     *           ],
                     *           "ts": 1795281914736
                     *         }
                     *       ],
                     *       "paired": []
                     *     }
                     */
                    "application/json": {
                        pending: ({
                            requestId: string;
                            deviceId: string;
                            publicKey?: string;
                            displayName?: string;
                            platform?: string;
                            clientId?: string;
                            clientMode?: string;
                            role?: string;
                            roles?: string[];
                            scopes?: string[];
                            remoteIp?: string;
                            ts?: number;
                        } & {
                            [key: string]: unknown;
                        })[];
                        paired: ({
                            deviceId: string;
                            publicKey?: string;
                            displayName?: string;
                            platform?: string;
                            clientId?: string;
                            clientMode?: string;
                            role?: string;
                            roles?: string[];
                            scopes?: string[];
                            remoteIp?: string;
                        } & {
                            [key: string]: unknown;
                        })[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    approveAllDevices: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Which were approved, and which were not. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "approved": [
                     *         "683619e4-3515-4229-9c58-05e77bc17d85"
                     *       ],
                     *       "failed": [],
                     *       "message": "Approved 1 of 1"
                     *     }
                     */
                    "application/json": {
                        approved: string[];
                        failed: {
                            requestId: string;
                            success: boolean;
                            error: string;
                        }[];
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    approveDevice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the pairing request. */
                requestId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is paired. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "requestId": "683619e4-3515-4229-9c58-05e77bc17d85",
                     *       "message": "Approved 683619e4-3515-4229-9c58-05e77bc17d85"
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                        requestId: string;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listTasks: {
        parameters: {
            query?: {
                /** @description Whether tasks that are switched off are listed as well. */
                includeDisabled?: "true" | "false";
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tasks, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "jobs": [
                     *         {
                     *           "id": "c16e2a5d-7d81-430d-a96b-8dfb5b60c277",
                     *           "name": "Morning report",
                     *           "enabled": true,
                     *           "createdAtMs": 1795281866768,
                     *           "updatedAtMs": 1795281866768,
                     *           "schedule": {
                     *             "kind": "cron",
                     *             "expr": "0 9 * * *",
                     *             "tz": "Europe/Berlin"
                     *           },
                     *           "sessionTarget": "isolated",
                     *           "wakeMode": "now",
                     *           "payload": {
                     *             "kind": "agentTurn",
                     *             "message": "Sum up what came in over night.",
                     *             "timeoutSeconds": 300
                     *           },
                     *           "delivery": {
                     *             "mode": "none"
                     *           },
                     *           "state": {
                     *             "nextRunAtMs": 1795334400000
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        jobs: ({
                            id: string;
                            name: string;
                            enabled: boolean;
                            createdAtMs: number;
                            declarationKey?: string;
                        } & {
                            [key: string]: unknown;
                        })[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Morning report",
                 *       "schedule": {
                 *         "kind": "cron",
                 *         "expr": "0 9 * * *",
                 *         "tz": "Europe/Berlin"
                 *       },
                 *       "payload": {
                 *         "kind": "agentTurn",
                 *         "message": "Sum up what came in over night."
                 *       }
                 *     }
                 */
                "application/json": {
                    name: string;
                    description?: string;
                    /** @default true */
                    enabled?: boolean;
                    schedule: {
                        /** @constant */
                        kind: "at";
                        /** @description Once, at this time; UTC where it does not say. */
                        at: string;
                    } | {
                        /** @constant */
                        kind: "every";
                        everyMs: number;
                        staggerMs?: number;
                    } | {
                        /** @constant */
                        kind: "cron";
                        /** @description Minute, hour, day of the month, month, day of the week. */
                        expr: string;
                        /** Format: time-zone */
                        tz?: string;
                        staggerMs?: number;
                    };
                    payload: ({
                        /** @constant */
                        kind: "agentTurn";
                        text?: string;
                        message?: string;
                        model?: string;
                        thinking?: string;
                        timeoutSeconds?: number;
                    } | Record<string, never> | Record<string, never>) | ({
                        /** @constant */
                        kind: "systemEvent";
                        text?: string;
                        message?: string;
                    } | Record<string, never> | Record<string, never>);
                    /**
                     * @description `main` takes system events, `isolated` turns of the agent; unless told, what the payload needs.
                     * @enum {string}
                     */
                    sessionTarget?: "main" | "isolated";
                    /**
                     * @default now
                     * @enum {string}
                     */
                    wakeMode?: "now" | "next-heartbeat";
                    /**
                     * @description Where the result goes: nowhere unless told.
                     * @default {
                     *       "mode": "none"
                     *     }
                     */
                    delivery?: {
                        /** @enum {string} */
                        mode: "none" | "announce" | "webhook";
                        channel?: string;
                        to?: string;
                        bestEffort?: boolean;
                    };
                };
            };
        };
        responses: {
            /** @description The task. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "c16e2a5d-7d81-430d-a96b-8dfb5b60c277",
                     *       "name": "Morning report",
                     *       "enabled": true,
                     *       "createdAtMs": 1795281866768,
                     *       "updatedAtMs": 1795281866768,
                     *       "schedule": {
                     *         "kind": "cron",
                     *         "expr": "0 9 * * *",
                     *         "tz": "Europe/Berlin"
                     *       },
                     *       "sessionTarget": "isolated",
                     *       "wakeMode": "now",
                     *       "payload": {
                     *         "kind": "agentTurn",
                     *         "message": "Sum up what came in over night.",
                     *         "timeoutSeconds": 300
                     *       },
                     *       "delivery": {
                     *         "mode": "none"
                     *       },
                     *       "state": {
                     *         "nextRunAtMs": 1795334400000
                     *       }
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        enabled: boolean;
                        createdAtMs: number;
                        declarationKey?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The task. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "c16e2a5d-7d81-430d-a96b-8dfb5b60c277",
                     *       "name": "Morning report",
                     *       "enabled": true,
                     *       "createdAtMs": 1795281866768,
                     *       "updatedAtMs": 1795281866768,
                     *       "schedule": {
                     *         "kind": "cron",
                     *         "expr": "0 9 * * *",
                     *         "tz": "Europe/Berlin"
                     *       },
                     *       "sessionTarget": "isolated",
                     *       "wakeMode": "now",
                     *       "payload": {
                     *         "kind": "agentTurn",
                     *         "message": "Sum up what came in over night.",
                     *         "timeoutSeconds": 300
                     *       },
                     *       "delivery": {
                     *         "mode": "none"
                     *       },
                     *       "state": {
                     *         "nextRunAtMs": 1795334400000
                     *       }
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        enabled: boolean;
                        createdAtMs: number;
                        declarationKey?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "schedule": {
                 *         "kind": "every",
                 *         "everyMs": 3600000
                 *       }
                 *     }
                 */
                "application/json": {
                    name?: string;
                    description?: string;
                    enabled?: boolean;
                    schedule?: {
                        /** @constant */
                        kind: "at";
                        /** @description Once, at this time; UTC where it does not say. */
                        at: string;
                    } | {
                        /** @constant */
                        kind: "every";
                        everyMs: number;
                        staggerMs?: number;
                    } | {
                        /** @constant */
                        kind: "cron";
                        /** @description Minute, hour, day of the month, month, day of the week. */
                        expr: string;
                        /** Format: time-zone */
                        tz?: string;
                        staggerMs?: number;
                    };
                    payload?: ({
                        /** @constant */
                        kind: "agentTurn";
                        text?: string;
                        message?: string;
                        model?: string;
                        thinking?: string;
                        timeoutSeconds?: number;
                    } | Record<string, never> | Record<string, never>) | ({
                        /** @constant */
                        kind: "systemEvent";
                        text?: string;
                        message?: string;
                    } | Record<string, never> | Record<string, never>);
                    /**
                     * @description `main` takes system events, `isolated` turns of the agent; unless told, what the payload needs.
                     * @enum {string}
                     */
                    sessionTarget?: "main" | "isolated";
                    /** @enum {string} */
                    wakeMode?: "now" | "next-heartbeat";
                    /** @description Where the result goes: nowhere unless told. */
                    delivery?: {
                        /** @enum {string} */
                        mode: "none" | "announce" | "webhook";
                        channel?: string;
                        to?: string;
                        bestEffort?: boolean;
                    };
                } | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never> | Record<string, never>;
            };
        };
        responses: {
            /** @description The task as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "c16e2a5d-7d81-430d-a96b-8dfb5b60c277",
                     *       "name": "Morning report",
                     *       "enabled": true,
                     *       "createdAtMs": 1795281866768,
                     *       "updatedAtMs": 1795281866768,
                     *       "schedule": {
                     *         "kind": "every",
                     *         "everyMs": 3600000
                     *       },
                     *       "sessionTarget": "isolated",
                     *       "wakeMode": "now",
                     *       "payload": {
                     *         "kind": "agentTurn",
                     *         "message": "Sum up what came in over night.",
                     *         "timeoutSeconds": 300
                     *       },
                     *       "delivery": {
                     *         "mode": "none"
                     *       },
                     *       "state": {
                     *         "nextRunAtMs": 1795334400000
                     *       }
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        enabled: boolean;
                        createdAtMs: number;
                        declarationKey?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true
                     *     }
                     */
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    runTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether it was started. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "enqueued": true,
                     *       "runId": "manual:c16e2a5d-7d81-430d-a96b-8dfb5b60c277:1795281900000:1"
                     *     }
                     */
                    "application/json": {
                        ok: boolean;
                        enqueued?: boolean;
                        runId?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    toggleTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "enabled": false
                 *     }
                 */
                "application/json": {
                    enabled?: boolean;
                };
            };
        };
        responses: {
            /** @description The task as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "c16e2a5d-7d81-430d-a96b-8dfb5b60c277",
                     *       "name": "Morning report",
                     *       "enabled": false,
                     *       "createdAtMs": 1795281866768,
                     *       "updatedAtMs": 1795281866768,
                     *       "schedule": {
                     *         "kind": "cron",
                     *         "expr": "0 9 * * *",
                     *         "tz": "Europe/Berlin"
                     *       },
                     *       "sessionTarget": "isolated",
                     *       "wakeMode": "now",
                     *       "payload": {
                     *         "kind": "agentTurn",
                     *         "message": "Sum up what came in over night.",
                     *         "timeoutSeconds": 300
                     *       },
                     *       "delivery": {
                     *         "mode": "none"
                     *       },
                     *       "state": {
                     *         "nextRunAtMs": 1795334400000
                     *       }
                     *     }
                     */
                    "application/json": {
                        id: string;
                        name: string;
                        enabled: boolean;
                        createdAtMs: number;
                        declarationKey?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listTaskRuns: {
        parameters: {
            query?: {
                /** @description How many items a page has. */
                limit?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the task. */
                jobId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its runs, newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "entries": [
                     *         {
                     *           "ts": 1795334404210,
                     *           "jobId": "c16e2a5d-7d81-430d-a96b-8dfb5b60c277",
                     *           "action": "finished",
                     *           "status": "ok",
                     *           "summary": "Three letters, one of them urgent.",
                     *           "runAtMs": 1795334400004,
                     *           "durationMs": 4206
                     *         }
                     *       ],
                     *       "total": 1,
                     *       "offset": 0,
                     *       "limit": 50,
                     *       "hasMore": false,
                     *       "nextOffset": null
                     *     }
                     */
                    "application/json": {
                        entries: ({
                            jobId: string;
                            ts: number;
                        } & {
                            [key: string]: unknown;
                        })[];
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listTemplates: {
        parameters: {
            query?: {
                /**
                 * @description Only this category.
                 * @example productivity
                 */
                category?: string;
                /** @description Only those that are featured, or only those that are not. */
                featured?: "true" | "false";
                /** @description `me`: only those that this user made. */
                submittedBy?: "me";
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The templates. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "templates": [
                     *         {
                     *           "templateId": "t1cseveo",
                     *           "name": "Page keeper",
                     *           "slug": "page",
                     *           "description": "Builds and serves a web page, and changes it as you ask.",
                     *           "longDescription": "# A web page with an agent behind it\n\nThe agent serves `workspace/site/` …",
                     *           "authorName": "Berth",
                     *           "authorUrl": null,
                     *           "authorLogoUrl": null,
                     *           "category": "web",
                     *           "tags": [
                     *             "web",
                     *             "page",
                     *             "hosting"
                     *           ],
                     *           "openclawVersion": "2026.9.6",
                     *           "requiredSecrets": [],
                     *           "includedSkillCids": [],
                     *           "defaultVibe": "neat and quick",
                     *           "defaultEmoji": "🌐",
                     *           "version": 1,
                     *           "partnerName": "Berth",
                     *           "partnerUrl": null,
                     *           "partnerLogoUrl": null,
                     *           "snapshotCid": "bafybeihknjjlpya5ie76jot3mvp2kymyqnab6g676dxaqd2n5bz5hoi4qq",
                     *           "featured": true,
                     *           "sortOrder": 0,
                     *           "status": "published",
                     *           "archived": false,
                     *           "price": null,
                     *           "priceAsset": "",
                     *           "priceNetwork": "",
                     *           "payToAddress": null,
                     *           "isFree": true,
                     *           "createdAt": null,
                     *           "updatedAt": null,
                     *           "submittedBy": null,
                     *           "gitUrl": null,
                     *           "gitCommitSha": null
                     *         },
                     *         {
                     *           "templateId": "tk3m9x2q",
                     *           "name": "Librarian",
                     *           "slug": "librarian",
                     *           "description": "Keeps a catalogue of books.",
                     *           "longDescription": "# Librarian\n\nKeeps a catalogue of books.",
                     *           "authorName": "",
                     *           "authorUrl": null,
                     *           "authorLogoUrl": null,
                     *           "category": "reference",
                     *           "tags": [
                     *             "books"
                     *           ],
                     *           "openclawVersion": "2026.9.6",
                     *           "requiredSecrets": [
                     *             {
                     *               "name": "CATALOGUE_KEY",
                     *               "description": "Opens the catalogue.",
                     *               "required": true
                     *             }
                     *           ],
                     *           "includedSkillCids": [],
                     *           "defaultVibe": "quiet and exact",
                     *           "defaultEmoji": "📚",
                     *           "version": 1,
                     *           "partnerName": "",
                     *           "partnerUrl": null,
                     *           "partnerLogoUrl": null,
                     *           "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "featured": false,
                     *           "sortOrder": 1,
                     *           "status": "published",
                     *           "archived": false,
                     *           "price": null,
                     *           "priceAsset": "",
                     *           "priceNetwork": "",
                     *           "payToAddress": null,
                     *           "isFree": true,
                     *           "createdAt": "2026-11-21T11:20:07.512Z",
                     *           "updatedAt": "2026-11-21T11:20:07.512Z",
                     *           "submittedBy": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "gitUrl": null,
                     *           "gitCommitSha": "5f1c0e9b7a2d4836c1f0b9e8d7a6c5b4f3e2d1c0"
                     *         }
                     *       ],
                     *       "categories": [
                     *         "reference",
                     *         "web"
                     *       ]
                     *     }
                     */
                    "application/json": {
                        templates: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description Those that ship with Berth are. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was made of. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        }[];
                        /** @description Of all templates that the caller sees, not of this page only. */
                        categories: string[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agentId": "x7f3k2ab",
                 *       "slug": "librarian",
                 *       "category": "reference",
                 *       "tags": [
                 *         "books"
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description An agent of the workspace, of whose snapshot the template is made. */
                    agentId?: string;
                    /** @description Of the agent’s history. Not given: the newest one. */
                    snapshotCid?: string;
                    /** @description In place of `agentId`: the https address of a public repository, as `git clone` takes it. */
                    gitUrl?: string | null;
                    /** @description Not given: the repository’s default branch. */
                    branch?: string | null;
                    /** @description In place of `branch`: `refs/heads/main`, a tag, or a commit. */
                    ref?: string | null;
                    /** @description The folder of the repository that is the template. Not given: all of it. */
                    path?: string | null;
                    name?: string;
                    /** @description As `name`. */
                    nameOverride?: string;
                    slug?: string;
                    /** @description As `slug`. */
                    slugOverride?: string;
                    description?: string;
                    longDescription?: string | null;
                    category?: string;
                    tags?: string[];
                    authorName?: string;
                    authorUrl?: string | null;
                    authorLogoUrl?: string | null;
                };
            };
        };
        responses: {
            /** @description The template. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "template": {
                     *         "templateId": "tk3m9x2q",
                     *         "name": "Librarian",
                     *         "slug": "librarian",
                     *         "description": "Keeps a catalogue of books.",
                     *         "longDescription": "# Librarian\n\nKeeps a catalogue of books.",
                     *         "authorName": "",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "reference",
                     *         "tags": [
                     *           "books"
                     *         ],
                     *         "openclawVersion": "2026.9.6",
                     *         "requiredSecrets": [
                     *           {
                     *             "name": "CATALOGUE_KEY",
                     *             "description": "Opens the catalogue.",
                     *             "required": true
                     *           }
                     *         ],
                     *         "includedSkillCids": [],
                     *         "defaultVibe": "quiet and exact",
                     *         "defaultEmoji": "📚",
                     *         "version": 1,
                     *         "partnerName": "",
                     *         "partnerUrl": null,
                     *         "partnerLogoUrl": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "featured": false,
                     *         "sortOrder": 1,
                     *         "status": "published",
                     *         "archived": false,
                     *         "price": null,
                     *         "priceAsset": "",
                     *         "priceNetwork": "",
                     *         "payToAddress": null,
                     *         "isFree": true,
                     *         "createdAt": "2026-11-21T11:20:07.512Z",
                     *         "updatedAt": "2026-11-21T11:20:07.512Z",
                     *         "submittedBy": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "gitUrl": null,
                     *         "gitCommitSha": "5f1c0e9b7a2d4836c1f0b9e8d7a6c5b4f3e2d1c0"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        template: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description Those that ship with Berth are. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was made of. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
            507: components["responses"]["507"];
        };
    };
    listPublicTemplates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The templates. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "templates": [
                     *         {
                     *           "templateId": "t1cseveo",
                     *           "name": "Page keeper",
                     *           "slug": "page",
                     *           "description": "Builds and serves a web page, and changes it as you ask.",
                     *           "longDescription": "# A web page with an agent behind it\n\nThe agent serves `workspace/site/` …",
                     *           "authorName": "Berth",
                     *           "authorUrl": null,
                     *           "authorLogoUrl": null,
                     *           "category": "web",
                     *           "tags": [
                     *             "web",
                     *             "page",
                     *             "hosting"
                     *           ],
                     *           "openclawVersion": "2026.9.6",
                     *           "requiredSecrets": [],
                     *           "includedSkillCids": [],
                     *           "defaultVibe": "neat and quick",
                     *           "defaultEmoji": "🌐",
                     *           "version": 1,
                     *           "partnerName": "Berth",
                     *           "partnerUrl": null,
                     *           "partnerLogoUrl": null,
                     *           "snapshotCid": "bafybeihknjjlpya5ie76jot3mvp2kymyqnab6g676dxaqd2n5bz5hoi4qq",
                     *           "featured": true,
                     *           "sortOrder": 0,
                     *           "status": "published",
                     *           "archived": false,
                     *           "price": null,
                     *           "priceAsset": "",
                     *           "priceNetwork": "",
                     *           "payToAddress": null,
                     *           "isFree": true,
                     *           "createdAt": null,
                     *           "updatedAt": null,
                     *           "submittedBy": null,
                     *           "gitUrl": null,
                     *           "gitCommitSha": null
                     *         }
                     *       ],
                     *       "categories": [
                     *         "web"
                     *       ]
                     *     }
                     */
                    "application/json": {
                        templates: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description Those that ship with Berth are. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was made of. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        }[];
                        /** @description Of all templates that the caller sees, not of this page only. */
                        categories: string[];
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    getTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The slug.
                 * @example t42smfjt
                 */
                templateId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The template. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "template": {
                     *         "templateId": "t1cseveo",
                     *         "name": "Page keeper",
                     *         "slug": "page",
                     *         "description": "Builds and serves a web page, and changes it as you ask.",
                     *         "longDescription": "# A web page with an agent behind it\n\nThe agent serves `workspace/site/` …",
                     *         "authorName": "Berth",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "web",
                     *         "tags": [
                     *           "web",
                     *           "page",
                     *           "hosting"
                     *         ],
                     *         "openclawVersion": "2026.9.6",
                     *         "requiredSecrets": [],
                     *         "includedSkillCids": [],
                     *         "defaultVibe": "neat and quick",
                     *         "defaultEmoji": "🌐",
                     *         "version": 1,
                     *         "partnerName": "Berth",
                     *         "partnerUrl": null,
                     *         "partnerLogoUrl": null,
                     *         "snapshotCid": "bafybeihknjjlpya5ie76jot3mvp2kymyqnab6g676dxaqd2n5bz5hoi4qq",
                     *         "featured": true,
                     *         "sortOrder": 0,
                     *         "status": "published",
                     *         "archived": false,
                     *         "price": null,
                     *         "priceAsset": "",
                     *         "priceNetwork": "",
                     *         "payToAddress": null,
                     *         "isFree": true,
                     *         "createdAt": null,
                     *         "updatedAt": null,
                     *         "submittedBy": null,
                     *         "gitUrl": null,
                     *         "gitCommitSha": null
                     *       }
                     *     }
                     */
                    "application/json": {
                        template: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description Those that ship with Berth are. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was made of. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the template, 8 characters.
                 * @example t42smfjt
                 */
                templateId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agentId": "x7f3k2ab",
                 *       "description": "Keeps a catalogue of books, and lends them."
                 *     }
                 */
                "application/json": {
                    /** @description An agent of the workspace, of whose snapshot the template is made. */
                    agentId?: string;
                    /** @description Of the agent’s history. Not given: the newest one. */
                    snapshotCid?: string;
                    /** @description In place of `agentId`: the https address of a public repository, as `git clone` takes it. */
                    gitUrl?: string | null;
                    /** @description Not given: the repository’s default branch. */
                    branch?: string | null;
                    /** @description In place of `branch`: `refs/heads/main`, a tag, or a commit. */
                    ref?: string | null;
                    /** @description The folder of the repository that is the template. Not given: all of it. */
                    path?: string | null;
                    name?: string;
                    /** @description As `name`. */
                    nameOverride?: string;
                    slug?: string;
                    /** @description As `slug`. */
                    slugOverride?: string;
                    description?: string;
                    longDescription?: string | null;
                    category?: string;
                    tags?: string[];
                    authorName?: string;
                    authorUrl?: string | null;
                    authorLogoUrl?: string | null;
                };
            };
        };
        responses: {
            /** @description The template. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "template": {
                     *         "templateId": "tk3m9x2q",
                     *         "name": "Librarian",
                     *         "slug": "librarian",
                     *         "description": "Keeps a catalogue of books, and lends them.",
                     *         "longDescription": "# Librarian\n\nKeeps a catalogue of books.",
                     *         "authorName": "",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "reference",
                     *         "tags": [
                     *           "books"
                     *         ],
                     *         "openclawVersion": "2026.9.6",
                     *         "requiredSecrets": [
                     *           {
                     *             "name": "CATALOGUE_KEY",
                     *             "description": "Opens the catalogue.",
                     *             "required": true
                     *           }
                     *         ],
                     *         "includedSkillCids": [],
                     *         "defaultVibe": "quiet and exact",
                     *         "defaultEmoji": "📚",
                     *         "version": 2,
                     *         "partnerName": "",
                     *         "partnerUrl": null,
                     *         "partnerLogoUrl": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "featured": false,
                     *         "sortOrder": 1,
                     *         "status": "published",
                     *         "archived": false,
                     *         "price": null,
                     *         "priceAsset": "",
                     *         "priceNetwork": "",
                     *         "payToAddress": null,
                     *         "isFree": true,
                     *         "createdAt": "2026-11-21T11:20:07.512Z",
                     *         "updatedAt": "2026-11-21T11:20:07.512Z",
                     *         "submittedBy": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "gitUrl": null,
                     *         "gitCommitSha": "5f1c0e9b7a2d4836c1f0b9e8d7a6c5b4f3e2d1c0"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        template: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description Those that ship with Berth are. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was made of. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
            507: components["responses"]["507"];
        };
    };
    archiveTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the template, 8 characters.
                 * @example t42smfjt
                 */
                templateId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is archived. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Template Librarian archived"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getTemplateById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the template, 8 characters.
                 * @example t42smfjt
                 */
                templateId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The template. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "template": {
                     *         "templateId": "tk3m9x2q",
                     *         "name": "Librarian",
                     *         "slug": "librarian",
                     *         "description": "Keeps a catalogue of books.",
                     *         "longDescription": "# Librarian\n\nKeeps a catalogue of books.",
                     *         "authorName": "",
                     *         "authorUrl": null,
                     *         "authorLogoUrl": null,
                     *         "category": "reference",
                     *         "tags": [
                     *           "books"
                     *         ],
                     *         "openclawVersion": "2026.9.6",
                     *         "requiredSecrets": [
                     *           {
                     *             "name": "CATALOGUE_KEY",
                     *             "description": "Opens the catalogue.",
                     *             "required": true
                     *           }
                     *         ],
                     *         "includedSkillCids": [],
                     *         "defaultVibe": "quiet and exact",
                     *         "defaultEmoji": "📚",
                     *         "version": 1,
                     *         "partnerName": "",
                     *         "partnerUrl": null,
                     *         "partnerLogoUrl": null,
                     *         "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *         "featured": false,
                     *         "sortOrder": 1,
                     *         "status": "published",
                     *         "archived": false,
                     *         "price": null,
                     *         "priceAsset": "",
                     *         "priceNetwork": "",
                     *         "payToAddress": null,
                     *         "isFree": true,
                     *         "createdAt": "2026-11-21T11:20:07.512Z",
                     *         "updatedAt": "2026-11-21T11:20:07.512Z",
                     *         "submittedBy": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "gitUrl": null,
                     *         "gitCommitSha": "5f1c0e9b7a2d4836c1f0b9e8d7a6c5b4f3e2d1c0"
                     *       }
                     *     }
                     */
                    "application/json": {
                        template: {
                            templateId: string;
                            name: string;
                            slug: string;
                            description: string;
                            longDescription: string | null;
                            authorName: string;
                            authorUrl: string | null;
                            authorLogoUrl: string | null;
                            category: string;
                            tags: string[];
                            openclawVersion: string;
                            requiredSecrets: {
                                name: string;
                                description: string;
                                guideUrl?: string;
                                guideSteps?: string[];
                                required: boolean;
                            }[];
                            includedSkillCids: string[];
                            defaultVibe: string | null;
                            defaultEmoji: string | null;
                            version: number;
                            partnerName: string;
                            partnerUrl: string | null;
                            partnerLogoUrl: string | null;
                            snapshotCid: string;
                            /** @description Those that ship with Berth are. */
                            featured: boolean;
                            sortOrder: number;
                            /** @constant */
                            status: "published";
                            /** @constant */
                            archived: false;
                            price: null;
                            priceAsset: string;
                            priceNetwork: string;
                            payToAddress: null;
                            /** @constant */
                            isFree: true;
                            createdAt: string | null;
                            updatedAt: string | null;
                            submittedBy: string | null;
                            /** @description The repository that it was made of. */
                            gitUrl: string | null;
                            gitCommitSha: string | null;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    validateTemplate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "agentId": "x7f3k2ab"
                 *     }
                 */
                "application/json": {
                    /** @description An agent of the workspace, of whose snapshot the template is made. */
                    agentId?: string;
                    /** @description Of the agent’s history. Not given: the newest one. */
                    snapshotCid?: string;
                    /** @description In place of `agentId`: the https address of a public repository, as `git clone` takes it. */
                    gitUrl?: string | null;
                    /** @description Not given: the repository’s default branch. */
                    branch?: string | null;
                    /** @description In place of `branch`: `refs/heads/main`, a tag, or a commit. */
                    ref?: string | null;
                    /** @description The folder of the repository that is the template. Not given: all of it. */
                    path?: string | null;
                };
            };
        };
        responses: {
            /** @description What is in it, and what is wrong with it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "valid": true,
                     *       "errors": [],
                     *       "manifest": {
                     *         "version": 1,
                     *         "engine": "openclaw",
                     *         "agent": {
                     *           "name": "Librarian"
                     *         }
                     *       },
                     *       "readme": "# Librarian\n",
                     *       "files": [
                     *         "README.md",
                     *         "manifest.json",
                     *         "workspace/AGENTS.md"
                     *       ],
                     *       "commitSha": "5f1c0e9b7a2d4836c1f0b9e8d7a6c5b4f3e2d1c0"
                     *     }
                     */
                    "application/json": {
                        valid: boolean;
                        errors: string[];
                        manifest: {
                            [key: string]: unknown;
                        } | null;
                        readme: string | null;
                        /** @description Paths, at most 1000. */
                        files: string[];
                        commitSha: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    listTemplateBranches: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "gitUrl": "https://git.example/librarian.git"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: git-url
                     * @description The https address of a public repository, as `git clone` takes it.
                     */
                    gitUrl: string;
                };
            };
        };
        responses: {
            /** @description Its branches, by name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "branches": [
                     *         "main",
                     *         "next"
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @description At most 1000. */
                        branches: string[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    listTemplateRefs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "gitUrl": "https://git.example/librarian.git",
                 *       "search": "m"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: git-url
                     * @description The https address of a public repository, as `git clone` takes it.
                     */
                    gitUrl: string;
                    /** @description What the names have in them, in any case. */
                    search?: string;
                };
            };
        };
        responses: {
            /** @description Its branches and tags, by name. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "branches": [
                     *         "main"
                     *       ],
                     *       "tags": [],
                     *       "defaultBranch": "main"
                     *     }
                     */
                    "application/json": {
                        /** @description At most 1000. */
                        branches: string[];
                        /** @description At most 1000. */
                        tags: string[];
                        /** @description Null where the server does not say. */
                        defaultBranch: string | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    listSnapshots: {
        parameters: {
            query?: {
                /** @description How many items a page has. */
                limit?: number;
                /** @description The `next_page_token` of the page before. */
                pageToken?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The history. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "snapshots": [
                     *         {
                     *           "agentId": "x7f3k2ab",
                     *           "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *           "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "changeSummary": "1 changed",
                     *           "contentDiff": "diff --git a/workspace/MEMORY.md b/workspace/MEMORY.md\n--- a/workspace/MEMORY.md\n+++ b/workspace/MEMORY.md\n@@ -1 +1,2 @@\n # Memory\n+The catalogue is due on Friday.\n",
                     *           "createdAt": "2026-11-21T11:20:41.377Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        snapshots: {
                            agentId: string;
                            /** @description A folder on IPFS: the tree of the commit. */
                            snapshotCid: string;
                            userId: string;
                            /** @description The commit in the agent’s git repository. */
                            commitSha: string | null;
                            /** @description What is other than in the one before, for people. */
                            changeSummary: string | null;
                            /** @description Unified, against the one before; at most 64 KiB. */
                            contentDiff: string | null;
                            createdAt: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    compareSnapshots: {
        parameters: {
            query: {
                /** @description Of the history of this agent; any version and base. */
                from: string;
                /** @description Of the history of this agent; any version and base. */
                to: string;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The difference. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "from": "bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
                     *       "to": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "diff": "diff --git a/workspace/MEMORY.md b/workspace/MEMORY.md\n--- a/workspace/MEMORY.md\n+++ b/workspace/MEMORY.md\n@@ -1 +1,2 @@\n # Memory\n+The catalogue is due on Friday.\n",
                     *       "truncated": false
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        from: string;
                        to: string;
                        /** @description Unified, as git has it; empty where both are the same. At most 256 KiB. */
                        diff: string;
                        /** @description Whether there is more of it. */
                        truncated: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getSyncStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How it is. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "agentId": "x7f3k2ab",
                     *       "configured": true,
                     *       "lastSync": "2026-11-21T11:20:41.377Z",
                     *       "message": "A change is saved within about 60 seconds while the agent runs"
                     *     }
                     */
                    "application/json": {
                        agentId: string;
                        /** @description Whether snapshots are taken. */
                        configured: boolean;
                        /** @description The settings for want of which they are not. */
                        missing?: string[];
                        lastSync: string | null;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    syncAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is saved. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Snapshot taken",
                     *       "lastSync": "2026-11-21T11:20:41.377Z",
                     *       "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01",
                     *       "changeSummary": "1 changed",
                     *       "leftOut": [
                     *         "workspace/site/build/: excluded by the rule build/ of .gitignore"
                     *       ],
                     *       "details": "Left out: workspace/site/build/: excluded by the rule build/ of .gitignore"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        lastSync: string;
                        /** @description The newest snapshot: a new one, or the one that there was. */
                        snapshotCid: string;
                        commitSha: string;
                        /** @description Null where nothing had changed. */
                        changeSummary: string | null;
                        /** @description Files that are not in the snapshot, each with the reason: `<path>: <reason>`. */
                        leftOut: string[];
                        /** @description The same in one text. */
                        details?: string;
                    };
                };
            };
            /** @description It is being saved. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "The snapshot is being taken",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    resetAgent: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description RFC 7240: `wait=N` waits up to N seconds (at most 300) for the operation to end, `respond-async` not at all.
                 * @example wait=30
                 */
                Prefer?: string;
                /**
                 * @description Any text of your own, at most 255 visible ASCII characters. A repeat finds the operation of the first request.
                 * @example import-2026-11-21-0001
                 */
                "Idempotency-Key"?: string;
            };
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: cid
                     * @description Of the history of this agent; any version and base.
                     */
                    snapshotCid: string;
                };
            };
        };
        responses: {
            /** @description The workspace is the snapshot’s. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Workspace reset to bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        snapshotCid: string;
                        commitSha: string;
                        /** @description Empty folders and permissions that could not be brought back, and why. */
                        lost?: string[];
                    };
                };
            };
            /** @description It is being reset. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Operation-Id": components["headers"]["Operation-Id"];
                    Location: components["headers"]["Location"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Workspace is being reset to bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
                     *       "commitSha": "4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01",
                     *       "operation": {
                     *         "id": "0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41",
                     *         "state": "running"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                        snapshotCid: string;
                        commitSha: string;
                        /** @description Empty folders and permissions that could not be brought back, and why. */
                        lost?: string[];
                        operation: {
                            id: string;
                            /** @enum {string} */
                            state: "queued" | "running" | "succeeded" | "failed" | "canceled";
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            422: components["responses"]["422"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listPortForwarding: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The routes, by path. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "mappings": [
                     *         {
                     *           "port": 3000,
                     *           "pathPrefix": "/",
                     *           "protected": false
                     *         },
                     *         {
                     *           "port": 8080,
                     *           "pathPrefix": "/admin",
                     *           "protected": true
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        mappings: {
                            port: number;
                            pathPrefix: string;
                            protected: boolean;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    setPortForwarding: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "mappings": [
                 *         {
                 *           "port": 3000,
                 *           "pathPrefix": "/",
                 *           "protected": false
                 *         },
                 *         {
                 *           "port": 8080,
                 *           "pathPrefix": "/admin",
                 *           "protected": true
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    mappings: {
                        /** @description From 1025 to 65535, except 18789 and 7700. */
                        port: number;
                        /**
                         * Format: path-prefix
                         * @description Whole segments of a path, such as `/app`; `/` alone is everything.
                         */
                        pathPrefix: string;
                        /** @description Whether it takes the gateway token. */
                        protected?: boolean | null;
                    }[] | null;
                };
            };
        };
        responses: {
            /** @description The routes as they are now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "mappings": [
                     *         {
                     *           "port": 3000,
                     *           "pathPrefix": "/",
                     *           "protected": false
                     *         },
                     *         {
                     *           "port": 8080,
                     *           "pathPrefix": "/admin",
                     *           "protected": true
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        mappings: {
                            port: number;
                            pathPrefix: string;
                            protected: boolean;
                        }[];
                        /** @constant */
                        success: true;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    listDomains: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domains, the oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "domains": [
                     *         {
                     *           "id": "0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2",
                     *           "agentId": "x7f3k2ab",
                     *           "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *           "subdomain": null,
                     *           "customDomain": "shop.example.com",
                     *           "targetPort": 3000,
                     *           "protected": false,
                     *           "status": "verified",
                     *           "url": "https://shop.example.com",
                     *           "cnameTarget": "x7f3k2ab.apps.example",
                     *           "txtName": null,
                     *           "txtValue": null,
                     *           "createdAt": "2026-11-21T11:20:04.310Z",
                     *           "updatedAt": "2026-11-21T11:20:04.310Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        domains: {
                            /** Format: uuid */
                            id: string;
                            agentId: string;
                            userId: string;
                            subdomain: string | null;
                            customDomain: string | null;
                            targetPort: number;
                            protected: boolean;
                            /** @enum {string} */
                            status: "pending_ownership" | "verified";
                            /** @description Where it is, once it is verified. */
                            url: string;
                            cnameTarget: string | null;
                            /** @description The TXT record that is still to be seen; null when it is verified. */
                            txtName: string | null;
                            txtValue: string | null;
                            createdAt: string;
                            updatedAt: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    addDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "customDomain": "shop.example.com",
                 *       "targetPort": 3000
                 *     }
                 */
                "application/json": {
                    /** @description One label: the name below the operator’s domain. */
                    subdomain?: string | null;
                    /** @description A domain of one’s own, such as `shop.example.com`. */
                    customDomain?: string | null;
                    /** @description From 1025 to 65535, except 18789 and 7700. */
                    targetPort: number;
                    protected?: boolean | null;
                } & ({
                    subdomain: string;
                } | {
                    customDomain: string;
                });
            };
        };
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "domain": {
                     *         "id": "0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2",
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "subdomain": null,
                     *         "customDomain": "shop.example.com",
                     *         "targetPort": 3000,
                     *         "protected": false,
                     *         "status": "pending_ownership",
                     *         "url": "https://shop.example.com",
                     *         "cnameTarget": "x7f3k2ab.apps.example",
                     *         "txtName": "_service-verify.shop.example.com",
                     *         "txtValue": "berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s",
                     *         "createdAt": "2026-11-21T11:20:04.310Z",
                     *         "updatedAt": "2026-11-21T11:20:04.310Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        domain: {
                            /** Format: uuid */
                            id: string;
                            agentId: string;
                            userId: string;
                            subdomain: string | null;
                            customDomain: string | null;
                            targetPort: number;
                            protected: boolean;
                            /** @enum {string} */
                            status: "pending_ownership" | "verified";
                            /** @description Where it is, once it is verified. */
                            url: string;
                            cnameTarget: string | null;
                            /** @description The TXT record that is still to be seen; null when it is verified. */
                            txtName: string | null;
                            txtValue: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getDomainChallenge: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "customDomain": "shop.example.com"
                 *     }
                 */
                "application/json": {
                    /** Format: domain-name */
                    customDomain: string;
                };
            };
        };
        responses: {
            /** @description The records to set. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "customDomain": "shop.example.com",
                     *       "type": "TXT",
                     *       "name": "_service-verify.shop.example.com",
                     *       "value": "berth-verify=ZBLC4vDC_FLhKqZxvHkc7gBjEWZ3yMGdGkq5TQ0yB1s",
                     *       "cnameTarget": "x7f3k2ab.apps.example"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        customDomain: string;
                        /** @constant */
                        type: "TXT";
                        /** @description Name of the TXT record to set. */
                        name: string;
                        /** @description Its value. */
                        value: string;
                        /** @description Where a CNAME record of the domain is to point. */
                        cnameTarget: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    updateDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the domain, a UUID. */
                domainId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "targetPort": 8080,
                 *       "protected": true
                 *     }
                 */
                "application/json": {
                    subdomain?: unknown;
                    customDomain?: unknown;
                    /** @description From 1025 to 65535, except 18789 and 7700. */
                    targetPort?: number;
                    /** @description Whether it takes the gateway token. */
                    protected?: boolean;
                };
            };
        };
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "domain": {
                     *         "id": "0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2",
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "subdomain": null,
                     *         "customDomain": "shop.example.com",
                     *         "targetPort": 8080,
                     *         "protected": true,
                     *         "status": "verified",
                     *         "url": "https://shop.example.com",
                     *         "cnameTarget": "x7f3k2ab.apps.example",
                     *         "txtName": null,
                     *         "txtValue": null,
                     *         "createdAt": "2026-11-21T11:20:04.310Z",
                     *         "updatedAt": "2026-11-21T11:20:04.310Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        domain: {
                            /** Format: uuid */
                            id: string;
                            agentId: string;
                            userId: string;
                            subdomain: string | null;
                            customDomain: string | null;
                            targetPort: number;
                            protected: boolean;
                            /** @enum {string} */
                            status: "pending_ownership" | "verified";
                            /** @description Where it is, once it is verified. */
                            url: string;
                            cnameTarget: string | null;
                            /** @description The TXT record that is still to be seen; null when it is verified. */
                            txtName: string | null;
                            txtValue: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the domain, a UUID. */
                domainId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "message": "Domain deleted"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    verifyDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of the domain, a UUID. */
                domainId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domain, verified or still pending. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "success": true,
                     *       "verified": true,
                     *       "message": "The domain is verified",
                     *       "domain": {
                     *         "id": "0193a1d2-4c1e-7f09-b7d3-5e8a1c90f6b2",
                     *         "agentId": "x7f3k2ab",
                     *         "userId": "0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60",
                     *         "subdomain": null,
                     *         "customDomain": "shop.example.com",
                     *         "targetPort": 3000,
                     *         "protected": false,
                     *         "status": "verified",
                     *         "url": "https://shop.example.com",
                     *         "cnameTarget": "x7f3k2ab.apps.example",
                     *         "txtName": null,
                     *         "txtValue": null,
                     *         "createdAt": "2026-11-21T11:20:04.310Z",
                     *         "updatedAt": "2026-11-21T11:20:04.310Z"
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        success: true;
                        domain: {
                            /** Format: uuid */
                            id: string;
                            agentId: string;
                            userId: string;
                            subdomain: string | null;
                            customDomain: string | null;
                            targetPort: number;
                            protected: boolean;
                            /** @enum {string} */
                            status: "pending_ownership" | "verified";
                            /** @description Where it is, once it is verified. */
                            url: string;
                            cnameTarget: string | null;
                            /** @description The TXT record that is still to be seen; null when it is verified. */
                            txtName: string | null;
                            txtValue: string | null;
                            createdAt: string;
                            updatedAt: string;
                        };
                        verified: boolean;
                        /** @description What is still to be done, where it is not verified. */
                        message: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    getIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    putIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    postIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    deleteIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    patchIssues: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    createChatCompletion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "openclaw/default",
                 *       "messages": [
                 *         {
                 *           "role": "user",
                 *           "content": "Which books came this week?"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description `openclaw/default`, or another one of the list. */
                    model: string;
                    messages: ({
                        role: string;
                        content: unknown;
                    } & {
                        [key: string]: unknown;
                    })[];
                    /** @description Answer with server-sent events as the agent writes. */
                    stream?: boolean;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description A completion: JSON, or server-sent events if `stream` is true. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "chatcmpl_1f0c2a9d",
                     *       "created": 1795281866,
                     *       "model": "openclaw/default",
                     *       "object": "chat.completion",
                     *       "choices": [
                     *         {
                     *           "index": 0,
                     *           "message": {
                     *             "role": "assistant",
                     *             "content": "Three, all on ships."
                     *           },
                     *           "finish_reason": "stop"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                    /**
                     * @example data: {"id":"chatcmpl_1f0c2a9d","created":1795281866,"model":"openclaw/default","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"Three, all on ships."}}]}
                     *
                     *     data: [DONE]
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    createResponse: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "model": "openclaw/default",
                 *       "input": "Which books came this week?"
                 *     }
                 */
                "application/json": {
                    /** @description `openclaw/default`, or another one of the list. */
                    model: string;
                    input: unknown;
                    /** @description Answer with server-sent events as the agent writes. */
                    stream?: boolean;
                } & {
                    [key: string]: unknown;
                };
            };
        };
        responses: {
            /** @description A response: JSON, or server-sent events if `stream` is true. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "resp_1f0c2a9d",
                     *       "object": "response",
                     *       "status": "completed",
                     *       "model": "openclaw/default",
                     *       "output": [
                     *         {
                     *           "type": "message",
                     *           "role": "assistant",
                     *           "content": [
                     *             {
                     *               "type": "output_text",
                     *               "text": "Three, all on ships."
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                    /**
                     * @example event: response.output_text.delta
                     *     data: {"type":"response.output_text.delta","delta":"Three, all on ships."}
                     */
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            408: components["responses"]["408"];
            413: components["responses"]["413"];
            415: components["responses"]["415"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    listModels: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The models. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "object": "list",
                     *       "data": [
                     *         {
                     *           "id": "openclaw/default",
                     *           "object": "model",
                     *           "created": 1795281866,
                     *           "owned_by": "openclaw"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    readModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the agent, 8 characters.
                 * @example x7f3k2ab
                 */
                agentId: string;
                /** @description The id of a model in the list of models, such as `openclaw/default`. */
                model: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "openclaw/default",
                     *       "object": "model",
                     *       "created": 1795281866,
                     *       "owned_by": "openclaw"
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            502: components["responses"]["502"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getIpfsNode: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The node. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "data": {
                     *         "driver": "kubo",
                     *         "agent": "kubo/0.43.0",
                     *         "peer_id": "12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp",
                     *         "addresses": [
                     *           "/ip4/203.0.113.7/tcp/4001/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
                     *         ],
                     *         "repo_bytes": 734003200
                     *       }
                     *     }
                     */
                    "application/json": {
                        data: {
                            /** @enum {string} */
                            driver: "kubo" | "embedded";
                            agent: string;
                            peer_id: string | null;
                            addresses: string[];
                            repo_bytes: number | null;
                        };
                    };
                };
            };
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
        };
    };
    live: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok"
                     *     }
                     */
                    "application/json": {
                        /** @constant */
                        status: "ok";
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    ready: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ready, or `degraded` where another part is not well. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok",
                     *       "parts": {
                     *         "database": {
                     *           "status": "ok"
                     *         },
                     *         "queue": {
                     *           "status": "ok",
                     *           "detail": "in PostgreSQL"
                     *         },
                     *         "schema": {
                     *           "status": "ok"
                     *         },
                     *         "disk": {
                     *           "status": "ok"
                     *         },
                     *         "host": {
                     *           "status": "ok"
                     *         },
                     *         "dispatcher": {
                     *           "status": "ok"
                     *         },
                     *         "workers": {
                     *           "status": "ok",
                     *           "detail": "1 running"
                     *         },
                     *         "ipfs": {
                     *           "status": "ok",
                     *           "detail": "embedded"
                     *         },
                     *         "ipfs_private": {
                     *           "status": "ok",
                     *           "detail": "embedded"
                     *         },
                     *         "docker": {
                     *           "status": "ok"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @enum {string} */
                        status: "ok" | "degraded" | "down";
                        parts: {
                            database: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            queue: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            schema: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            disk: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            host: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            dispatcher: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            workers: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            ipfs: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            ipfs_private: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            docker?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            kubernetes?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            processes?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                        };
                    };
                };
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            /** @description A part that the answer needs is away, or has no room on its disk. Nothing that was accepted is lost. */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "down",
                     *       "parts": {
                     *         "database": {
                     *           "status": "down",
                     *           "detail": "does not answer"
                     *         },
                     *         "queue": {
                     *           "status": "ok",
                     *           "detail": "in PostgreSQL"
                     *         },
                     *         "schema": {
                     *           "status": "ok"
                     *         },
                     *         "disk": {
                     *           "status": "ok"
                     *         },
                     *         "host": {
                     *           "status": "ok"
                     *         },
                     *         "dispatcher": {
                     *           "status": "ok"
                     *         },
                     *         "workers": {
                     *           "status": "ok",
                     *           "detail": "1 running"
                     *         },
                     *         "ipfs": {
                     *           "status": "ok",
                     *           "detail": "embedded"
                     *         },
                     *         "ipfs_private": {
                     *           "status": "ok",
                     *           "detail": "embedded"
                     *         },
                     *         "docker": {
                     *           "status": "ok"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": {
                        /** @enum {string} */
                        status: "ok" | "degraded" | "down";
                        parts: {
                            database: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            queue: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            schema: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            disk: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            host: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            dispatcher: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            workers: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            ipfs: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            ipfs_private: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            docker?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            kubernetes?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                            processes?: {
                                /** @enum {string} */
                                status: "ok" | "degraded" | "down";
                                detail?: string;
                            };
                        };
                    };
                };
            };
        };
    };
    openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The document. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "openapi": "3.1.0",
                     *       "info": {
                     *         "title": "Berth",
                     *         "version": "0.1.0"
                     *       },
                     *       "paths": {}
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The client has it already: `If-None-Match`. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    docs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description The client has it already: `If-None-Match`. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
    root: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Go to `/docs`; a browser, to the dashboard where it is on. */
            302: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
        };
    };
}
