//! Who is calling, before anything else happens: a layer around every service, reflection included.
//!
//! It reads the path and the credentials, consults [`crate::principal::access`], and either answers the call
//! itself or hands it on with the [`Principal`] and the caller's deadline in its extensions. No service can be reached around it, and a
//! path that the table does not name is answered UNIMPLEMENTED here. It logs no header value.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{
    FutureExt as _,
    future::{Either, Map},
};
use tonic::{Status, transport::server::UdsConnectInfo};
use tower::{Layer, Service};

use super::{
    deadline,
    status::{Unauthenticated, forbidden, unauthenticated, unimplemented},
    unread,
};
use crate::{
    principal::{
        Directory, Principal,
        access::{self, Access},
    },
    serve::connection::Connection,
};

/// Adds [`Authenticate`] around every service of one listener.
#[derive(Clone, Debug)]
pub struct AuthenticateLayer {
    directory: Arc<Directory>,
    dev: bool,
}

impl AuthenticateLayer {
    /// `dev` lets reflection answer without credentials.
    #[must_use]
    pub fn new(directory: Arc<Directory>, dev: bool) -> Self {
        Self { directory, dev }
    }
}

impl<S> Layer<S> for AuthenticateLayer {
    type Service = Authenticate<S>;

    fn layer(&self, inner: S) -> Authenticate<S> {
        Authenticate {
            inner,
            layer: self.clone(),
        }
    }
}

/// What is done to an answer.
type Explain<R, E> = fn(Result<R, E>) -> Result<R, E>;

/// The service that admits or answers.
#[derive(Clone, Debug)]
pub struct Authenticate<S> {
    inner: S,
    layer: AuthenticateLayer,
}

impl<S, RequestBody, ResponseBody> Service<http::Request<RequestBody>> for Authenticate<S>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<ResponseBody>>,
    ResponseBody: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<
        Map<S::Future, Explain<S::Response, S::Error>>,
        Ready<Result<S::Response, S::Error>>,
    >;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<RequestBody>) -> Self::Future {
        let (path, headers) = (request.uri().path(), request.headers());
        // The standard services keep the answers that their specifications give them.
        let is_ours = path.starts_with("/maka.");
        let admitted = self
            .layer
            .admit(path, headers, request.extensions())
            .and_then(|principal| Ok((principal, deadline::read(headers)?)));
        match admitted {
            Ok((principal, context)) => {
                request.extensions_mut().insert(context);
                if let Some(principal) = principal {
                    if let Some(connection) = request.extensions().get::<Connection>() {
                        connection.standing.known();
                    }
                    request.extensions_mut().insert(principal);
                }
                let explain: Explain<S::Response, S::Error> = if is_ours {
                    |answered| answered.map(unread::explain)
                } else {
                    |answered| answered
                };
                Either::Left(self.inner.call(request).map(explain))
            }
            Err(status) => Either::Right(ready(Ok(status.into_http()))),
        }
    }
}

impl AuthenticateLayer {
    /// The principal who may make this call; `None` where none is needed.
    fn admit(
        &self,
        path: &str,
        headers: &http::HeaderMap,
        extensions: &http::Extensions,
    ) -> Result<Option<Principal>, Status> {
        let access = access::of(path).ok_or_else(unimplemented)?;
        match access {
            Access::Open => return Ok(None),
            Access::AnyPrincipal if self.dev => return Ok(None),
            Access::AnyPrincipal | Access::Roles(_) => {}
        }
        let principal = self.identify(headers, extensions).map_err(|why| {
            tracing::debug!(path, why = why.reason(), "caller not known");
            unauthenticated(why)
        })?;
        if access.admits(principal.role) {
            Ok(Some(principal))
        } else {
            tracing::debug!(path, principal = %principal.name, role = %principal.role, "role not sufficient");
            Err(forbidden())
        }
    }

    fn identify(
        &self,
        headers: &http::HeaderMap,
        extensions: &http::Extensions,
    ) -> Result<Principal, Unauthenticated> {
        let mut shown = headers.get_all(http::header::AUTHORIZATION).iter();
        match (shown.next(), shown.next()) {
            (Some(_), Some(_)) => Err(Unauthenticated::Several),
            (Some(value), None) => {
                let token = bearer(value.as_bytes()).ok_or(Unauthenticated::NotBearer)?;
                self.directory
                    .by_token(token)
                    .cloned()
                    .ok_or(Unauthenticated::UnknownToken)
            }
            (None, _) => {
                let peer = extensions
                    .get::<UdsConnectInfo>()
                    .ok_or(Unauthenticated::Missing)?;
                let uid = peer
                    .peer_cred
                    .as_ref()
                    .ok_or(Unauthenticated::Missing)?
                    .uid();
                self.directory
                    .by_user(uid)
                    .cloned()
                    .ok_or(Unauthenticated::UnknownUser)
            }
        }
    }
}

/// The token of `Bearer <token>`; the scheme's case does not matter (RFC 9110 §11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(b"bearer ".len())?;
    let token = rest.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use http::{Extensions, HeaderMap};
    use tonic::Code;

    use super::*;
    use crate::{config::Config, principal::token::Token};

    const STATUS: &str = "/maka.gateway.v1.ComputerUse/GetStatus";
    const BEGIN: &str = "/maka.gateway.v1.ComputerUse/BeginSession";
    const HEALTH: &str = "/grpc.health.v1.Health/Check";
    const REFLECTION: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

    fn layer(agent: &Token, viewer: &Token, dev: bool) -> AuthenticateLayer {
        let text = format!(
            "state_dir = \"/s\"\n[[principals]]\nname = \"a\"\ntoken_sha256 = \"{}\"\n[[principals]]\nname = \"v\"\n\
             role = \"viewer\"\ntoken_sha256 = \"{}\"\n",
            agent.digest().to_hex(),
            viewer.digest().to_hex()
        );
        let config = Config::parse(Path::new("gateway.toml"), &text).unwrap();
        AuthenticateLayer::new(Arc::new(Directory::new(&config.principals)), dev)
    }

    fn headers(values: &[String]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(http::header::AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    /// K10: no method about the desktop, and no reflection, answers a caller without a good credential.
    #[test]
    fn credentials_decide_before_any_service() {
        let (agent, viewer) = (Token::generate(), Token::generate());
        let bearer = |token: &Token| vec![format!("Bearer {}", token.reveal())];
        let other = Token::generate();
        type Row = (
            &'static str,
            &'static str,
            Vec<String>,
            Result<Option<&'static str>, Code>,
        );
        let rows: [Row; 13] = [
            ("health is open", HEALTH, vec![], Ok(None)),
            ("nothing shown", STATUS, vec![], Err(Code::Unauthenticated)),
            (
                "reflection needs a principal",
                REFLECTION,
                vec![],
                Err(Code::Unauthenticated),
            ),
            (
                "reflection with a viewer",
                REFLECTION,
                bearer(&viewer),
                Ok(Some("v")),
            ),
            ("an agent", BEGIN, bearer(&agent), Ok(Some("a"))),
            (
                "scheme in another case",
                BEGIN,
                vec![format!("bEARER {}", agent.reveal())],
                Ok(Some("a")),
            ),
            (
                "role not sufficient",
                BEGIN,
                bearer(&viewer),
                Err(Code::PermissionDenied),
            ),
            (
                "a token of nobody",
                BEGIN,
                bearer(&other),
                Err(Code::Unauthenticated),
            ),
            (
                "two tokens",
                BEGIN,
                [bearer(&agent), bearer(&agent)].concat(),
                Err(Code::Unauthenticated),
            ),
            (
                "another scheme",
                BEGIN,
                vec!["Basic YTpi".to_owned()],
                Err(Code::Unauthenticated),
            ),
            (
                "no token",
                BEGIN,
                vec!["Bearer ".to_owned()],
                Err(Code::Unauthenticated),
            ),
            (
                "the digest is not the token",
                BEGIN,
                vec![format!("Bearer {}", agent.digest().to_hex())],
                Err(Code::Unauthenticated),
            ),
            (
                "a method nobody serves",
                "/maka.gateway.v1.ComputerUse/Nope",
                bearer(&agent),
                Err(Code::Unimplemented),
            ),
        ];
        let layer_under_test = layer(&agent, &viewer, false);
        for (row, path, shown, expected) in rows {
            let answer = layer_under_test
                .admit(path, &headers(&shown), &Extensions::new())
                .map(|principal| principal.map(|principal| principal.name.to_string()))
                .map_err(|status| status.code());
            assert_eq!(
                answer,
                expected.map(|name| name.map(str::to_owned)),
                "{row}"
            );
        }
        let dev = layer(&agent, &viewer, true);
        assert!(matches!(
            dev.admit(REFLECTION, &HeaderMap::new(), &Extensions::new()),
            Ok(None)
        ));
        assert!(
            dev.admit(STATUS, &HeaderMap::new(), &Extensions::new())
                .is_err(),
            "dev opens reflection alone"
        );
    }

    /// A caller on the socket that shows a bad token is not taken for the user it runs as.
    #[test]
    fn a_bad_token_never_falls_back_to_the_peer() {
        let text = "state_dir = \"/s\"\n[[principals]]\nname = \"me\"\nunix_uid = \"self\"\n";
        let config = Config::parse(Path::new("gateway.toml"), text).unwrap();
        let layer = AuthenticateLayer::new(Arc::new(Directory::new(&config.principals)), false);
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        let info = runtime.block_on(async {
            let stream = tokio::net::UnixStream::from_std(ours).unwrap();
            tonic::transport::server::Connected::connect_info(&stream)
        });
        let mut extensions = Extensions::new();
        extensions.insert(info);
        let admitted = layer
            .admit(BEGIN, &HeaderMap::new(), &extensions)
            .unwrap()
            .unwrap();
        assert_eq!(&*admitted.name, "me");
        let bad = headers(&["Bearer nope".to_owned()]);
        assert_eq!(
            layer.admit(BEGIN, &bad, &extensions).unwrap_err().code(),
            Code::Unauthenticated
        );
    }
}
